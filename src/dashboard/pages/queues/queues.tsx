import type { VerbAnswer } from "../../../client/verbs.ts";
import { Answer, Count, Empty, Page } from "../../parts/page.tsx";
import { Meter } from "../../parts/meter.tsx";
import { PauseButton } from "../../parts/pause.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask } from "../../state/book.ts";
import { duration } from "../../state/clock.ts";
import { href, segment } from "../../state/url.ts";
import { useVerb } from "../../state/use-verb.ts";

type Queue = VerbAnswer<"queues.list">["items"][number];

export function Queues() {
  const asks = { verb: "queues.list", input: {} } as const;
  const queues = useVerb(asks.verb, asks.input, { topics: ["job.created", "run.ended"], everyMs: 5000 });
  const columns: readonly Column<Queue>[] = [
    { head: "Queue", cell: ({ queue }) => <bdi>{queue}</bdi>, width: "minmax(120px, 1.4fr)" },
    {
      head: "State",
      cell: ({ paused, queued, running }) => (
        <Status status={paused === null ? (running + queued > 0 ? "active" : "ready") : "paused"} note={paused?.note} />
      ),
      width: "minmax(90px, 1fr)",
    },
    { head: "Running", cell: (queue) => <Utilisation queue={queue} />, width: "minmax(110px, 1fr)" },
    { head: "Queued", cell: ({ queued }) => <Amount of={queued} />, width: "76px", align: "right" },
    { head: "Waiting", cell: ({ waiting }) => <Amount of={waiting} />, width: "76px", align: "right" },
    { head: "Failed", cell: ({ failed }) => <Amount of={failed} tone="bad-text" />, width: "70px", align: "right" },
    { head: "Oldest", cell: ({ oldestAt }) => <Time at={oldestAt} />, width: "92px", minor: true },
    { head: "Rate", cell: ({ rate }) => (rate === null ? "–" : rateText(rate)), width: "100px", minor: true },
    {
      head: "Actions",
      cell: ({ queue, paused }) => (
        <PauseButton
          what={`the queue ${queue}`}
          paused={paused}
          onPause={async (note) => {
            await ask("queues.pause", { queue, ...(note === undefined ? {} : { note }) });
            queues.again();
          }}
          onResume={async () => {
            await ask("queues.resume", { queue });
            queues.again();
          }}
        />
      ),
      width: "100px",
      align: "right",
    },
  ];
  return (
    <Page title="Queues" asks={asks}>
      <Answer of={queues}>
        {({ items }) => (
          <Table
            label="Queues"
            rows={items}
            columns={columns}
            idOf={({ queue }) => queue}
            hrefOf={({ queue }) => href(`/queues/${segment(queue)}`)}
            empty={
              <Empty icon="queue" title="No queues yet" snippet={snippet}>
                A queue is a named line of jobs. It exists from its first job on.
              </Empty>
            }
          />
        )}
      </Answer>
    </Page>
  );
}

/** A nothing steps back, so that the eye finds what is there. */
function Amount({ of, tone = "" }: { readonly of: number; readonly tone?: string }) {
  return (
    <span class={of === 0 ? "faint" : tone}>
      <Count of={of} />
    </span>
  );
}

const snippet = `await book.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { queue: "mail" });`;

export function Utilisation({ queue: { running, concurrency } }: { readonly queue: Queue }) {
  return (
    <Meter
      value={running}
      max={concurrency}
      label={concurrency === null ? String(running) : `${running} of ${concurrency}`}
    />
  );
}

export function rateText({ max, perMs }: { readonly max: number; readonly perMs: number }): string {
  return `${max} per ${duration(perMs)}`;
}
