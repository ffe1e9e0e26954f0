import { JsonView } from "../../parts/json-view.tsx";
import { Answer, Code, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { runColumns } from "../runs/runs.tsx";
import { nameOf } from "./lifespans.tsx";
import { Lived } from "./sessions.tsx";

export function SessionPage() {
  const id = usePathParam("id");
  const asks = { verb: "sessions.show", input: { id } } as const;
  const shown = useVerb(asks.verb, asks.input, { topics: ["run.ended"] });
  const sessions = useList("sessions.list", { limit: 200 }, { everyMs: 5000 });
  const lost = useList("runs.list", { session: id, status: "lost" });
  const runs = useList("runs.list", { session: id, limit: 20 }, { topics: ["run.ended"] });
  const session = sessions.rows.find((each) => each.id === id);
  return (
    <Page
      title={session === undefined ? "Session" : nameOf(session)}
      crumbs={[{ text: "Sessions", href: href("/sessions") }]}
      beside={session === undefined ? null : <Status status={session.status} />}
      asks={asks}
    >
      {session?.error == null ? null : (
        <Panel title={session.error.type}>
          <p class="error-text">
            <bdi>{session.error.message}</bdi>
          </p>
          {session.error.trace === null ? null : <Code text={session.error.trace} label="Trace" />}
        </Panel>
      )}
      <Answer of={shown}>
        {(of) => (
          <Panel title="Facts">
            <KeyValues
              facts={[
                ["Started", session === undefined ? null : <Time key="s" at={session.startedAt} whole />],
                ["Stopped", session?.stoppedAt == null ? null : <Time key="e" at={session.stoppedAt} whole />],
                ["Lived", session === undefined ? null : <Lived key="l" of={session} />],
                ["Last heard", session === undefined ? null : <Time key="h" at={session.lastHeartbeatAt} />],
                ["Runs", of.runs.toLocaleString("en-US")],
                ["Failed", of.errors.toLocaleString("en-US")],
                ["Lost", String(of.byStatus.lost)],
                ["Not recorded", of.dropped === null || of.dropped.runs === 0 ? null : `${of.dropped.runs} runs`],
              ]}
            />
          </Panel>
        )}
      </Answer>
      {session?.metadata == null || Object.keys(session.metadata).length === 0 ? null : (
        <Panel title="What it says of itself">
          <JsonView value={session.metadata} label="Metadata" />
        </Panel>
      )}
      {lost.rows.length === 0 ? null : (
        <Panel title="Interrupted" note="what it ran when it was lost; each was made again" flush>
          <Table
            label="Interrupted runs"
            rows={lost.rows}
            columns={runColumns}
            idOf={(run) => run.id}
            hrefOf={(run) => href(`/runs/${segment(run.id)}`)}
          />
        </Panel>
      )}
      <Panel title="Runs" flush>
        <Table
          label="Runs"
          rows={runs.rows}
          columns={runColumns}
          idOf={(run) => run.id}
          hrefOf={(run) => href(`/runs/${segment(run.id)}`)}
          onMore={runs.onMore}
          isReading={!runs.isKnown}
        />
      </Panel>
    </Page>
  );
}
