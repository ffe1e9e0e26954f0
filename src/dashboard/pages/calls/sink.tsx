import { Chart } from "../../parts/chart.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { PauseButton, PausedNote } from "../../parts/pause.tsx";
import { Status } from "../../parts/status.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask } from "../../state/book.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { lagText } from "../events/listeners.tsx";
import { runColumns } from "../runs/runs.tsx";

/** One sink: what waits for it, what it published, and what it could not. */
export function SinkPage() {
  const name = usePathParam("name");
  const asks = { verb: "sinks.show", input: { name } } as const;
  const sink = useVerb(asks.verb, asks.input, { topics: ["event.published", "run.ended"], everyMs: 10_000 });
  // Its deliveries run under the name of the listener that it is.
  const own = { name: `listener:sink:${name}` };
  const overview = useVerb("runs.overview", own, { topics: ["run.ended"] });
  const runs = useList("runs.list", { ...own, limit: 20 }, { topics: ["run.ended"] });
  const { data } = sink;
  return (
    <Page
      title={name}
      crumbs={[{ text: "Sinks", href: href("/sinks") }]}
      beside={
        data === undefined ? null : (
          <Status
            status={data.paused !== null ? "paused" : data.hosted ? data.state : "waiting"}
            note={data.hosted ? null : "for a host"}
          />
        )
      }
      asks={asks}
      actions={
        data === undefined ? null : (
          <PauseButton
            what={`the sink ${name}`}
            paused={data.paused}
            onPause={async (note) => {
              await ask("sinks.pause", { name, ...(note === undefined ? {} : { note }) });
              sink.again();
            }}
            onResume={async () => {
              await ask("sinks.resume", { name });
              sink.again();
            }}
          />
        )
      }
    >
      <Answer of={sink}>
        {(shown) => (
          <div class="stack">
            <PausedNote paused={shown.paused} />
            <Panel title="Facts">
              <KeyValues
                facts={[
                  ["Hands out", shown.topics.join(", ")],
                  ["Where", shown.where],
                  ["Backlog", lagText(shown.lag)],
                  [
                    "Dead letters",
                    <a key="d" href={href("/dead-letters", { q: `listener:sink:${name}` })}>
                      {shown.deadLetters}
                    </a>,
                  ],
                  ["Last published", <Time key="p" at={shown.lastPublishedAt} />],
                  ["Attempts", String(shown.attempts)],
                  [
                    "Queue",
                    <a key="q" href={href(`/queues/${segment(shown.queue)}`)}>
                      {shown.queue}
                    </a>,
                  ],
                  ["Began", shown.startedFrom],
                  ["Registered", <Time key="r" at={shown.registeredAt} />],
                ]}
              />
            </Panel>
          </div>
        )}
      </Answer>
      {overview.data === undefined || overview.data.runs === 0 ? null : (
        <Panel title="The last day">
          <Chart
            label="Published"
            stacked
            times={overview.data.buckets.map(({ at }) => at)}
            series={[
              {
                label: "done",
                tone: "good",
                values: overview.data.buckets.map(({ runs: all, errors }) => all - errors),
              },
              { label: "failed", tone: "bad", values: overview.data.buckets.map(({ errors }) => errors) },
            ]}
          />
        </Panel>
      )}
      <Panel title="What it published" flush>
        <Table
          label="Runs"
          rows={runs.rows}
          columns={runColumns}
          idOf={({ id }) => id}
          hrefOf={({ id }) => href(`/runs/${segment(id)}`)}
          onMore={runs.onMore}
          isReading={!runs.isKnown}
        />
      </Panel>
    </Page>
  );
}
