import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput } from "../../../client/verbs.ts";
import { Bulk } from "../../parts/bulk.tsx";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { Failure, KeyValues, Page, Panel } from "../../parts/page.tsx";
import { PauseButton, PausedNote } from "../../parts/pause.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, usePathParam } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { useVerb } from "../../state/use-verb.ts";
import { rateText, Utilisation } from "./queues.tsx";

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
          <Panel title="Now">
            <KeyValues
              facts={[
                ["Running", <Utilisation key="u" queue={found} />],
                [
                  "Queued",
                  <a key="q" href={href("/jobs", { q: `queue:${queue} status:queued` })}>
                    {found.queued}
                  </a>,
                ],
                [
                  "Waiting",
                  <a key="w" href={href("/jobs", { q: `queue:${queue} status:waiting` })}>
                    {found.waiting}
                  </a>,
                ],
                [
                  "Failed",
                  <a key="f" href={href("/jobs", { q: `queue:${queue} status:failed` })}>
                    {found.failed}
                  </a>,
                ],
                ["Oldest in line", <Time key="o" at={found.oldestAt} />],
                ["Rate", found.rate === null ? "no limit" : rateText(found.rate)],
              ]}
            />
          </Panel>
        </>
      )}
      {line.error === undefined ? null : <Failure error={line.error} onAgain={line.again} />}
      <Panel
        title="In line"
        note="in the order in which they will start"
        flush
        actions={
          <>
            <Bulk
              verb="jobs.retryAll"
              input={{ queue, kind: ["all"] }}
              countOf={({ count }) => count}
              act="Retry"
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
              noun="job"
              what={`queue:${queue} status:queued`}
              icon="close"
              kind="danger"
              whyNot={whyNot("operate")}
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
          isReading={!line.isKnown}
          empty={<p class="empty-line">Nobody is in line: what comes starts at once.</p>}
        />
      </Panel>
      {isLimiting && found !== undefined ? (
        <Limits queue={found} onClose={() => setLimiting(false)} onDone={again} />
      ) : null}
    </Page>
  );
}

type MoversProps = {
  readonly job: Standing;
  readonly line: readonly Standing[];
  readonly onMove: (id: string, to: Omit<VerbInput<"jobs.move">, "id">) => Promise<void>;
};

/** Moves within the jobs of one priority; what another priority decides stays as it is. */
function Movers({ job: { id, priority }, line, onMove }: MoversProps) {
  const at = line.findIndex((each) => each.id === id);
  const above = line[at - 1];
  const below = line[at + 1];
  const may = whyNot("operate");
  const noUp = may ?? (above?.priority === priority ? undefined : "It is the first of its priority");
  const noDown = may ?? (below?.priority === priority ? undefined : "It is the last of its priority");
  return (
    <span class="row end">
      <Button
        icon="top"
        label="Move to the front"
        kind="quiet"
        whyNot={noUp}
        onPress={() => onMove(id, { first: true })}
      />
      <Button
        icon="up"
        label="Move up"
        kind="quiet"
        whyNot={noUp}
        onPress={() => onMove(id, { before: above?.id ?? "" })}
      />
      <Button
        icon="down"
        label="Move down"
        kind="quiet"
        whyNot={noDown}
        onPress={() => onMove(id, { after: below?.id ?? "" })}
      />
      <Prioritise id={id} priority={priority} />
    </span>
  );
}

function Prioritise({ id, priority }: { readonly id: string; readonly priority: number }) {
  const [isAsking, setAsking] = useState(false);
  const [value, setValue] = useState(String(priority));
  return (
    <>
      <Button
        icon="edit"
        label="Change its priority"
        kind="quiet"
        whyNot={whyNot("operate")}
        onPress={() => setAsking(true)}
      />
      {isAsking ? (
        <Confirm
          title="Change the priority"
          act="Change it"
          onClose={() => setAsking(false)}
          onAct={() => ask("jobs.prioritise", { id, priority: Number(value) })}
        >
          <label class="field">
            <span>Priority, from −1000 to 1000; higher runs first, and it goes to the end of that priority</span>
            <input
              type="number"
              min={-1000}
              max={1000}
              value={value}
              onInput={({ currentTarget }) => setValue(currentTarget.value)}
            />
          </label>
        </Confirm>
      ) : null}
    </>
  );
}

type LimitsProps = {
  readonly queue: VerbAnswer<"queues.list">["items"][number];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

function Limits({ queue: { queue, concurrency, rate }, onClose, onDone }: LimitsProps) {
  const [most, setMost] = useState(concurrency === null ? "" : String(concurrency));
  const [pace, setPace] = useState(rate === null ? "" : `${rate.max}/${rate.perMs}ms`);
  return (
    <Confirm
      title={`Limits of ${queue}`}
      act="Set"
      onClose={onClose}
      onAct={async () => {
        const input = { queue, concurrency: most === "" ? "none" : most, rate: pace === "" ? "none" : pace };
        await ask("queues.limit", input as unknown as VerbInput<"queues.limit">);
        tell(`The limits of ${queue} are set`);
        onDone();
      }}
    >
      <label class="field">
        <span>How many may run at the same time</span>
        <input
          type="text"
          placeholder="no limit"
          value={most}
          onInput={({ currentTarget }) => setMost(currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>How many may start per window</span>
        <input
          type="text"
          placeholder="no limit, or 10/1m"
          value={pace}
          onInput={({ currentTarget }) => setPace(currentTarget.value)}
        />
      </label>
    </Confirm>
  );
}
