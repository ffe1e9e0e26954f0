import type { VerbAnswer } from "../../../client/verbs.ts";
import { Id } from "../../parts/copy.tsx";
import { Failure, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { duration, now } from "../../state/clock.ts";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { useList } from "../../state/use-list.ts";
import { Lifespans, nameOf } from "./lifespans.tsx";

export type Session = VerbAnswer<"sessions.list">["items"][number];

export function Sessions() {
  const asks = { verb: "sessions.list", input: {} } as const;
  const sessions = useList(asks.verb, asks.input, { everyMs: 5000 });
  return (
    <Page title="Sessions" asks={asks}>
      {sessions.error === undefined ? null : <Failure error={sessions.error} onAgain={sessions.again} />}
      {sessions.rows.length < 2 ? null : (
        <Panel title="The last day" note="who ran when; a bar that ends where another begins is a restart">
          <Lifespans sessions={sessions.rows} />
        </Panel>
      )}
      <Table
        label="Sessions"
        rows={sessions.rows}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/sessions/${segment(id)}`)}
        onMore={sessions.onMore}
        isReading={!sessions.isKnown}
      />
    </Page>
  );
}

const columns: readonly Column<Session>[] = [
  {
    head: "Process",
    cell: (session) => <bdi>{nameOf(session)}</bdi>,
    width: "minmax(120px, 1.2fr)",
  },
  {
    head: "State",
    cell: ({ status, error }) => <Status status={status} note={error?.message} />,
    width: "minmax(110px, 1.6fr)",
  },
  {
    head: "Program",
    cell: ({ metadata }) => (
      <bdi>{[metadata?.["program"], metadata?.["version"]].filter(Boolean).join(" ") || "–"}</bdi>
    ),
    width: "minmax(90px, 0.8fr)",
    minor: true,
  },
  {
    head: "Interrupted",
    cell: ({ id, status }) => (status === "running" || status === "success" ? "–" : <Interrupted id={id} />),
    width: "96px",
    align: "right",
    minor: true,
  },
  { head: "Started", cell: ({ startedAt }) => <Time at={startedAt} />, width: "92px" },
  { head: "Lived", cell: (session) => <Lived of={session} />, width: "92px", align: "right", minor: true },
  { head: "Last heard", cell: ({ lastHeartbeatAt }) => <Time at={lastHeartbeatAt} />, width: "92px", minor: true },
  { head: "Id", cell: ({ id }) => <Id id={id} />, width: "92px", minor: true },
];

/** How many runs it was at when it was lost; each was made again by whoever found it. */
function Interrupted({ id }: { readonly id: string }) {
  const { data } = useVerb("sessions.show", { id });
  return <>{data?.byStatus.lost ?? "…"}</>;
}

export function Lived({ of: { startedAt, stoppedAt } }: { readonly of: Pick<Session, "startedAt" | "stoppedAt"> }) {
  return <>{duration((stoppedAt ?? now.value) - startedAt)}</>;
}
