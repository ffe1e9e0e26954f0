import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Bulk } from "../../parts/bulk.tsx";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { Meter } from "../../parts/meter.tsx";
import { Answer, Failure, Page, Panel } from "../../parts/page.tsx";
import { PauseButton, PausedNote } from "../../parts/pause.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { noteOf } from "../jobs/jobs.tsx";
import { Limits } from "./limits.tsx";
import { Movers } from "./movers.tsx";
import { rateText } from "./queues.tsx";

type Queue = VerbAnswer<"queues.list">["items"][number];
type Job = VerbAnswer<"jobs.list">["items"][number];
type Standing = VerbAnswer<"queues.line">["items"][number];

export function QueuePage() {
  const queue = usePathParam("queue");
  const asks = { verb: "queues.line", input: { queue } } as const;
  const queues = useVerb("queues.list", {}, { topics: ["job.created", "run.ended"], everyMs: 5000 });
  const line = useList(asks.verb, asks.input, { topics: ["job.created", "run.ended"], everyMs: 5000 });
  const found = queues.data?.items.find((each) => each.queue === queue);
  const [isLimiting, setLimiting] = useState(false);
  const [moves, setMoves] = useState(0);
  const again = (): void => {
    queues.again();
    line.again();
  };

  async function move(id: string, to: Omit<VerbInput<"jobs.move">, "id">): Promise<void> {
    await ask("jobs.move", { id, ...to });
    await line.read();
    setMoves((count) => count + 1);
  }

  const columns: readonly Column<Standing>[] = [
    { head: "Place", cell: ({ place }) => place, width: "60px" },
    { head: "Job", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(120px, 1.5fr)" },
    { head: "Priority", cell: ({ priority }) => priority, width: "76px", align: "right" },
    { head: "Made", cell: ({ createdAt }) => <Time at={createdAt} />, width: "90px", minor: true },
    { head: "Id", cell: ({ id }) => <Id id={id} />, width: "92px", minor: true },
    {
      head: "Order",
      cell: (job) => <Movers job={job} line={line.rows} onMove={move} />,
      width: "150px",
      align: "right",
    },
  ];

  return (
    <Page
      title={queue}
      crumbs={[{ text: "Queues", href: href("/queues") }]}
      asks={asks}
      actions={
        found === undefined ? null : (
          <>
            <Button icon="settings" whyNot={whyNot("operate")} onPress={() => setLimiting(true)}>
              Limits
            </Button>
            <PauseButton
              what={`the queue ${queue}`}
              paused={found.paused}
              onPause={async (note) => {
                await ask("queues.pause", { queue, ...(note === undefined ? {} : { note }) });
                again();
              }}
              onResume={async () => {
                await ask("queues.resume", { queue });
                again();
              }}
            />
          </>
        )
      }
    >
      {found === undefined ? null : (
        <>
          <PausedNote paused={found.paused} />
          <Now queue={found} />
        </>
      )}
      {line.error === undefined ? null : <Failure error={line.error} onAgain={line.again} />}
      <Panel
        title="In line"
        note="in the order in which they will start; drag one, or press Alt and an arrow key"
        flush
        actions={
          <>
            <Bulk
              verb="jobs.retryAll"
              input={{ queue, kind: ["all"] }}
              countOf={({ count }) => count}
              act="Retry"
              label="Retry failed"
              noun="job"
              what={`queue:${queue} status:failed`}
              icon="retry"
              whyNot={whyNot("operate")}
              onDone={again}
            />
            <Bulk
              verb="jobs.cancelAll"
              input={{ queue, status: ["queued"], kind: ["all"] }}
              countOf={({ count }) => count}
              act="Cancel"
              label="Cancel queued"
              noun="job"
              what={`queue:${queue} status:queued`}
              icon="close"
              kind="danger"
              whyNot={whyNot("operate")}
              onDone={again}
            />
            <Bulk
              verb="jobs.deleteAll"
              input={{ queue }}
              countOf={({ jobs }) => jobs}
              act="Delete"
              label="Delete ended"
              noun="job"
              what={`queue:${queue}, all that have ended`}
              icon="trash"
              kind="danger"
              whyNot={whyNot("admin")}
              onDone={again}
            />
          </>
        }
      >
        <Table
          label={`Jobs in line of ${queue}`}
          rows={line.rows}
          columns={columns}
          idOf={({ id }) => id}
          hrefOf={({ id }) => href(`/jobs/${segment(id)}`)}
          fresh={moves}
          onMore={line.onMore}
          reorder={
            whyNot("operate") === undefined
              ? { fits: (one, other) => one.priority === other.priority, move }
              : undefined
          }
          isReading={!line.isKnown}
          empty={<p class="empty-line">Nobody is in line: what comes starts at once.</p>}
        />
      </Panel>
      <div class="columns">
        <Some queue={queue} status="running" title="Running now" empty="Nothing runs." />
        <Some queue={queue} status="waiting" title="Waiting" empty="Nothing waits for a time, a key or a host." />
        <Some queue={queue} status="failed" title="Failed, and not tried again" empty="Nothing failed." />
      </div>
      {isLimiting && found !== undefined ? (
        <Limits queue={found} onClose={() => setLimiting(false)} onDone={again} />
      ) : null}
    </Page>
  );
}

function Now({ queue: found }: { readonly queue: Queue }) {
  const { queue, running, concurrency, queued, waiting, failed, oldestAt, rate } = found;
  const tile = (name: string, status: string, count: number): VNode => (
    <a class="tile" href={href("/jobs", { q: `queue:${queue} kind:all status:${status}` })}>
      <span class="tile-name">{name}</span>
      <span class={`tile-value${status === "failed" && count > 0 ? " bad-text" : ""}`}>
        {count.toLocaleString("en-US")}
      </span>
    </a>
  );
  return (
    <div class="tiles">
      <div class="tile">
        <span class="tile-name">Running</span>
        <span class="tile-value">{concurrency === null ? running : `${running} of ${concurrency}`}</span>
        {concurrency === null ? (
          <span class="tile-note">no limit of its own</span>
        ) : (
          <Meter value={running} max={concurrency} label={`${Math.round((100 * running) / concurrency)} % in use`} />
        )}
      </div>
      {tile("Queued", "queued", queued)}
      {tile("Waiting", "waiting", waiting)}
      {tile("Failed", "failed", failed)}
      <div class="tile">
        <span class="tile-name">Oldest in line</span>
        <span class="tile-value">
          <Time at={oldestAt} />
        </span>
        <span class="tile-note">{rate === null ? "no limit of its pace" : `at most ${rateText(rate)}`}</span>
      </div>
    </div>
  );
}

type SomeProps = {
  readonly queue: string;
  readonly status: "running" | "waiting" | "failed";
  readonly title: string;
  readonly empty: string;
};

/** The newest of one state, with what a reader wants to know of them. */
function Some({ queue, status, title, empty }: SomeProps) {
  const input = {
    queue,
    status: [status],
    kind: ["all"],
    limit: 6,
    ...(status === "failed" ? { retried: false } : {}),
  };
  const jobs = useVerb("jobs.list", input as VerbInput<"jobs.list">, {
    topics: ["job.created", "run.ended"],
    everyMs: 5000,
  });
  return (
    <Panel title={title} flush>
      <Answer of={jobs}>
        {({ items }) => (
          <Table
            label={title}
            rows={items}
            columns={someColumns}
            idOf={({ id }) => id}
            hrefOf={({ id }) => href(`/jobs/${segment(id)}`)}
            empty={<p class="empty-line">{empty}</p>}
          />
        )}
      </Answer>
    </Panel>
  );
}

const someColumns: readonly Column<Job>[] = [
  { head: "Job", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(90px, 1fr)" },
  {
    head: "Now",
    cell: (job) => (
      <bdi class="soft" title={noteOf(job)}>
        {noteOf(job) ?? "–"}
      </bdi>
    ),
    width: "minmax(110px, 1.8fr)",
  },
  { head: "Made", cell: ({ createdAt }) => <Time at={createdAt} />, width: "78px" },
];
