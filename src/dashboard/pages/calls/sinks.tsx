import type { VerbAnswer } from "../../../client/verbs.ts";
import { Answer, Empty, Page } from "../../parts/page.tsx";
import { PauseButton } from "../../parts/pause.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask } from "../../state/book.ts";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { lagText } from "../events/listeners.tsx";

type Sink = VerbAnswer<"sinks.list">["items"][number];

export function Sinks() {
  const asks = { verb: "sinks.list", input: {} } as const;
  const sinks = useVerb(asks.verb, asks.input, { topics: ["event.published", "run.ended"], everyMs: 10_000 });
  const columns: readonly Column<Sink>[] = [
    { head: "Sink", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(110px, 1fr)" },
    {
      head: "Hands out",
      cell: ({ topics, where }) => <bdi>{`${topics.join(", ")}${where === null ? "" : ` where ${where}`}`}</bdi>,
      width: "minmax(120px, 1.6fr)",
      minor: true,
    },
    {
      head: "State",
      cell: ({ paused, hosted, state }) => (
        <Status
          status={paused !== null ? "paused" : hosted ? state : "waiting"}
          note={hosted ? paused?.note : "for a host"}
        />
      ),
      width: "minmax(100px, 1fr)",
    },
    { head: "Backlog", cell: ({ lag }) => lagText(lag), width: "120px", align: "right" },
    {
      head: "Dead letters",
      cell: ({ name, deadLetters }) => (
        <a href={href("/dead-letters", { q: `listener:sink:${name}` })}>{deadLetters}</a>
      ),
      width: "96px",
      align: "right",
      minor: true,
    },
    {
      head: "Last published",
      cell: ({ lastPublishedAt }) => <Time at={lastPublishedAt} />,
      width: "110px",
      minor: true,
    },
    {
      head: "Actions",
      cell: ({ name, paused }) => (
        <PauseButton
          what={`the sink ${name}`}
          paused={paused}
          onPause={async (note) => {
            await ask("sinks.pause", { name, ...(note === undefined ? {} : { note }) });
            sinks.again();
          }}
          onResume={async () => {
            await ask("sinks.resume", { name });
            sinks.again();
          }}
        />
      ),
      width: "100px",
      align: "right",
    },
  ];
  return (
    <Page title="Sinks" asks={asks}>
      <Answer of={sinks}>
        {({ items }) => (
          <Table
            label="Sinks"
            rows={items}
            columns={columns}
            idOf={({ name }) => name}
            hrefOf={({ name }) => href(`/sinks/${segment(name)}`)}
            empty={
              <Empty icon="sink" title="No sinks yet" snippet={snippet}>
                A sink hands matching events to a webhook, a function or a broker, in order, at least once.
              </Empty>
            }
          />
        )}
      </Answer>
    </Page>
  );
}

const snippet = `const warehouse = sink("warehouse", {
  on: "order.>",
  to: webhook("https://warehouse.example/events", { secret }),
});`;
