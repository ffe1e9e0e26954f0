import type { VerbAnswer } from "../../../client/verbs.ts";
import { Answer, Empty, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { duration } from "../../state/clock.ts";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type Answered = VerbAnswer<"listeners.list">;
type Listener = Answered["items"][number];
type Live = Answered["live"][number];

export function Listeners() {
  const asks = { verb: "listeners.list", input: {} } as const;
  const listeners = useVerb(asks.verb, asks.input, { topics: ["event.published", "run.ended"], everyMs: 10_000 });
  return (
    <Page title="Listeners" asks={asks}>
      <Answer of={listeners}>
        {({ items, live }) => (
          <div class="stack">
            <Table
              label="Durable listeners"
              rows={items}
              columns={columns}
              idOf={({ name }) => name}
              hrefOf={({ name }) => href(`/listeners/${segment(name)}`)}
              empty={
                <Empty icon="listener" title="No durable listeners yet" snippet={snippet}>
                  A durable listener hears every event of its topics, once each, whatever happens to its process.
                </Empty>
              }
            />
            {live.length === 0 ? null : (
              <Panel title="Live listeners of apps" note="they hear what happens while their process runs" flush>
                <Table
                  label="Live listeners"
                  rows={live}
                  columns={liveColumns}
                  idOf={({ app, instance, name }) => `${app}/${instance}/${name}`}
                  hrefOf={({ app }) => href(`/apps/${segment(app)}`)}
                />
              </Panel>
            )}
          </div>
        )}
      </Answer>
    </Page>
  );
}

const snippet = `const reserveStock = listener("reserve-stock", {
  on: OrderPaid,
  run: ({ orderId }) => reserve(orderId),
});`;

export function lagText({ events, seconds }: { readonly events: number; readonly seconds: number }): string {
  return events === 0 ? "none" : `${events.toLocaleString("en-US")}, ${duration(seconds * 1000)}`;
}

const columns: readonly Column<Listener>[] = [
  { head: "Listener", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(120px, 1.2fr)" },
  {
    head: "Hears",
    cell: ({ topics, where }) => <bdi>{`${topics.join(", ")}${where === null ? "" : ` where ${where}`}`}</bdi>,
    width: "minmax(120px, 1.6fr)",
    minor: true,
  },
  {
    head: "State",
    cell: ({ paused, state, hosted }) => (
      <Status
        status={paused !== null ? "paused" : hosted ? state : "waiting"}
        note={hosted ? paused?.note : "for a host"}
      />
    ),
    width: "minmax(100px, 1fr)",
  },
  { head: "Lag", cell: ({ lag }) => lagText(lag), width: "110px", align: "right" },
  { head: "Dead letters", cell: ({ deadLetters }) => deadLetters, width: "96px", align: "right" },
  { head: "Ordered", cell: ({ ordered }) => (ordered ? "by key" : "–"), width: "72px", minor: true },
  { head: "Attempts", cell: ({ attempts }) => attempts, width: "76px", align: "right", minor: true },
];

const liveColumns: readonly Column<Live>[] = [
  { head: "Listener", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(120px, 1.2fr)" },
  { head: "App", cell: ({ app, instance }) => <bdi>{`${app} #${instance}`}</bdi>, width: "minmax(90px, 0.8fr)" },
  {
    head: "Hears",
    cell: ({ topics, where }) => <bdi>{`${topics.join(", ")}${where === null ? "" : ` where ${where}`}`}</bdi>,
    width: "minmax(120px, 2fr)",
  },
];
