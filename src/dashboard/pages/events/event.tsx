import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Answer, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { whyNot } from "../../state/book.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";
import { PublishDialog } from "./publish.tsx";
import { ReplayDialog } from "./replay.tsx";

type Event = VerbAnswer<"events.show">;
type Delivery = Event["deliveries"][number];
type Tree = Event["root"];

export function EventPage() {
  const id = usePathParam("id");
  const asks = { verb: "events.show", input: { id } } as const;
  const event = useVerb(asks.verb, asks.input, { topics: ["run.ended", "event.published"] });
  const [asked, setAsked] = useState<"replay" | "publish" | undefined>(undefined);
  const { data } = event;
  return (
    <Page
      title={data?.topic ?? "Event"}
      crumbs={[{ text: "Events", href: href("/events") }]}
      beside={data === undefined ? null : <Status status={data.status} />}
      asks={asks}
      actions={
        <>
          <Button icon="retry" whyNot={whyNot("operate")} onPress={() => setAsked("replay")}>
            Replay
          </Button>
          <Button
            icon="copy"
            whyNot={whyNot("operate") ?? (data === undefined ? "It is being read" : undefined)}
            onPress={() => setAsked("publish")}
          >
            Publish one like it
          </Button>
        </>
      }
    >
      <Answer of={event}>
        {(shown) => (
          <div class="columns wide-left">
            <div class="stack">
              <Panel title="Heard by" note={shown.deliveries.length === 0 ? "nobody listened" : undefined} flush>
                <Table
                  label="Deliveries"
                  rows={shown.deliveries}
                  columns={deliveryColumns}
                  idOf={({ listener }) => listener}
                  hrefOf={({ jobId }) => href(`/jobs/${segment(jobId)}`)}
                  empty={<p class="empty-line">No durable listener heard it.</p>}
                />
              </Panel>
              <Panel title="Lineage" note="what caused it, and what it caused">
                <ul class="tree">
                  <Branch tree={shown.root} current={shown.id} />
                </ul>
              </Panel>
            </div>
            <div class="stack">
              <Panel title="Facts">
                <KeyValues
                  facts={[
                    ["Id", <Id key="i" id={shown.id} />],
                    ["Said", <Time key="p" at={shown.publishedAt} whole />],
                    ["Key", shown.key],
                    ["Priority", String(shown.priority)],
                    ["Depth", String(shown.chainDepth)],
                    [
                      "Said by",
                      shown.causeRunId === null ? null : (
                        <Id key="c" id={shown.causeRunId} href={href(`/runs/${shown.causeRunId}`)} />
                      ),
                    ],
                    [
                      "Repeats",
                      shown.replayOf === null ? null : (
                        <Id key="r" id={shown.replayOf} href={href(`/events/${shown.replayOf}`)} />
                      ),
                    ],
                  ]}
                />
              </Panel>
              <Panel title="Payload">
                <JsonView value={shown.payload} label="Payload" />
              </Panel>
              {Object.keys(shown.headers).length === 0 ? null : (
                <Panel title="Headers">
                  <JsonView value={shown.headers} label="Headers" />
                </Panel>
              )}
            </div>
          </div>
        )}
      </Answer>
      {asked === "replay" ? <ReplayDialog input={{ id }} onClose={() => setAsked(undefined)} /> : null}
      {asked === "publish" && data !== undefined ? (
        <PublishDialog begun={data} onClose={() => setAsked(undefined)} />
      ) : null}
    </Page>
  );
}

const deliveryColumns: readonly Column<Delivery>[] = [
  { head: "Listener", cell: ({ listener }) => <bdi>{listener}</bdi>, width: "minmax(100px, 1.2fr)" },
  {
    head: "State",
    cell: ({ status, error, waitsFor }) => (
      <Status status={status} note={error?.message ?? (waitsFor === null ? null : `for ${waitsFor}`)} />
    ),
    width: "minmax(110px, 1.5fr)",
  },
  { head: "Attempts", cell: ({ attempts }) => attempts, width: "76px", align: "right", minor: true },
  { head: "Ended", cell: ({ endedAt }) => <Time at={endedAt} />, width: "88px" },
];

function Branch({ tree, current }: { readonly tree: Tree; readonly current: string }) {
  return (
    <li>
      <span class="row">
        {tree.id === current ? (
          <b>
            <bdi>{tree.topic}</bdi>
          </b>
        ) : (
          <a href={href(`/events/${segment(tree.id)}`)}>
            <bdi>{tree.topic}</bdi>
          </a>
        )}
        <Time at={tree.publishedAt} />
      </span>
      {tree.caused.length === 0 ? null : (
        <ul class="tree">
          {tree.caused.map((each) => (
            <Branch key={each.id} tree={each} current={current} />
          ))}
        </ul>
      )}
    </li>
  );
}
