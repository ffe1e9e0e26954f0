import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { FilterBar, type FilterField } from "../../parts/filter-bar.tsx";
import { Empty, Failure, Page } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { whyNot } from "../../state/book.ts";
import { writeExactly } from "../../state/exact.ts";
import { parseFilter, valueOf } from "../../state/filter.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { PublishDialog } from "./publish.tsx";
import { ReplayDialog } from "./replay.tsx";

type Event = VerbAnswer<"events.list">["items"][number];

const fields: readonly FilterField[] = [
  { name: "topic", hint: "a topic, or a pattern with * and >" },
  { name: "since", hint: "from then on: 1h, 24h or a time", values: ["1h", "24h", "7d"] },
  { name: "until", hint: "before then" },
];

export function Events() {
  const url = useUrl();
  const text = url.get("q") ?? "";
  const terms = parseFilter(text);
  const topic = valueOf(terms, "topic") ?? valueOf(terms, "");
  const since = valueOf(terms, "since");
  const until = valueOf(terms, "until");
  const input = {
    ...(topic && { topic }),
    ...(since && { since }),
    ...(until && { until }),
  } as VerbInput<"events.list">;
  const events = useList("events.list", input, { topics: ["event.published", "run.ended"] });
  const [asked, setAsked] = useState<"publish" | "replay" | undefined>(undefined);
  return (
    <Page
      title="Events"
      asks={{ verb: "events.list", input }}
      actions={
        <>
          <Button icon="retry" whyNot={whyNot("operate")} onPress={() => setAsked("replay")}>
            Replay
          </Button>
          <Button icon="plus" kind="main" whyNot={whyNot("operate")} onPress={() => setAsked("publish")}>
            Publish
          </Button>
        </>
      }
    >
      <FilterBar fields={fields} label="Filter events" />
      {events.error === undefined ? null : <Failure error={events.error} onAgain={events.again} />}
      <Table
        label="Events"
        rows={events.rows}
        columns={columns}
        fresh={text}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/events/${segment(id)}`)}
        onMore={events.onMore}
        isReading={!events.isKnown}
        empty={
          <Empty
            icon="event"
            title={text === "" ? "Nothing was said yet" : "No event matches"}
            snippet={text === "" ? snippet : ""}
          >
            An event is said in the transaction that makes it true, and heard by every durable listener.
          </Empty>
        }
      />
      {asked === "publish" ? <PublishDialog onClose={() => setAsked(undefined)} /> : null}
      {asked === "replay" ? <ReplayDialog input={input} onClose={() => setAsked(undefined)} /> : null}
    </Page>
  );
}

const snippet = `await book.write(async (tx) => {
  await tx.events.publish(OrderPaid, { orderId: "o-17" });
});`;

const columns: readonly Column<Event>[] = [
  { head: "Topic", cell: ({ topic }) => <bdi>{topic}</bdi>, width: "minmax(130px, 1.2fr)" },
  {
    head: "State",
    cell: ({ status, deliveries }) => (
      <Status status={status} note={deliveries.length === 0 ? null : heardBy(deliveries.length)} />
    ),
    width: "minmax(110px, 1fr)",
  },
  {
    head: "Payload",
    cell: ({ payload }) => <code class="faint">{brief(payload)}</code>,
    width: "minmax(0, 1.6fr)",
    minor: true,
  },
  { head: "Key", cell: ({ key }) => <bdi>{key ?? "–"}</bdi>, width: "90px", minor: true },
  { head: "Depth", cell: ({ chainDepth }) => chainDepth, width: "60px", align: "right", minor: true },
  { head: "Said", cell: ({ publishedAt }) => <Time at={publishedAt} />, width: "88px" },
  { head: "Id", cell: ({ id }) => <Id id={id} />, width: "92px", minor: true },
];

function heardBy(count: number): string {
  return `${count} ${count === 1 ? "listener" : "listeners"}`;
}

export function brief(value: unknown): string {
  const text = writeExactly(value, 0);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
