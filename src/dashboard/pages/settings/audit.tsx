import type { VerbAnswer } from "../../../client/verbs.ts";
import { Failure, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { whyNot } from "../../state/book.ts";
import { useList } from "../../state/use-list.ts";
import { brief } from "../events/events.tsx";

type Entry = VerbAnswer<"audit.list">["items"][number];

export function Audit() {
  const no = whyNot("admin");
  const audit = useList("audit.list", {}, { everyMs: 10_000, off: no !== undefined });
  return (
    <Panel title="Audit" note="every change that came through a server" flush>
      {no === undefined ? null : <p class="empty-line">{no}</p>}
      {audit.error === undefined ? null : <Failure error={audit.error} />}
      <Table
        label="Audit"
        rows={audit.rows}
        columns={columns}
        idOf={({ id }) => id}
        onMore={audit.onMore}
        isReading={!audit.isKnown && no === undefined}
        empty={no === undefined ? <p class="empty-line">Nothing was changed yet.</p> : null}
      />
    </Panel>
  );
}

const columns: readonly Column<Entry>[] = [
  { head: "Verb", cell: ({ verb }) => verb, width: "minmax(120px, 1fr)" },
  {
    head: "On",
    cell: ({ subject, input }) => <bdi class="faint">{subject ?? brief(input)}</bdi>,
    width: "minmax(100px, 1.6fr)",
    minor: true,
  },
  { head: "By", cell: ({ by }) => <bdi>{`${by.name} (${by.role})`}</bdi>, width: "minmax(100px, 1fr)" },
  { head: "From", cell: ({ from }) => from, width: "110px", minor: true },
  {
    head: "Outcome",
    cell: ({ outcome }) => (
      <Status status={outcome === null ? "pending" : outcome.status < 400 ? "ok" : "failed"} note={outcome?.code} />
    ),
    width: "minmax(90px, 0.8fr)",
  },
  { head: "When", cell: ({ at }) => <Time at={at} />, width: "88px" },
];
