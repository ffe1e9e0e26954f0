import { useState } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { Bulk } from "../../parts/bulk.tsx";
import { Button } from "../../parts/button.tsx";
import { Id } from "../../parts/copy.tsx";
import { FilterBar } from "../../parts/filter-bar.tsx";
import { Empty, Failure, Page, Tabs } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Time, Took } from "../../parts/time.tsx";
import { ask, whyNot } from "../../state/book.ts";
import { parseFilter, valueOf, withTerm } from "../../state/filter.ts";
import { tell } from "../../state/toast.ts";
import { href, segment, useUrl } from "../../state/url.ts";
import { useList } from "../../state/use-list.ts";
import { EnqueueDialog } from "./enqueue.tsx";
import { jobFields, readJobFilter, statuses } from "./filter.ts";

type Job = VerbAnswer<"jobs.list">["items"][number];

export function Jobs() {
  const url = useUrl();
  const text = url.get("q") ?? "";
  const filter = readJobFilter(text);
  const asks = { verb: "jobs.list", input: filter } as const;
  const jobs = useList(asks.verb, asks.input, { topics: ["job.created", "run.ended"], everyMs: 10_000 });
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isMaking, setMaking] = useState(false);
  const status = valueOf(parseFilter(text), "status") ?? "all";

  return (
    <Page
      title="Jobs"
      asks={asks}
      actions={
        <Button icon="plus" kind="main" whyNot={whyNot("operate")} onPress={() => setMaking(true)}>
          Enqueue
        </Button>
      }
    >
      <div class="stack tight">
        <FilterBar fields={jobFields} label="Filter jobs" />
        <div class="row wrap">
          <Tabs
            label="State"
            current={status}
            tabs={["all", ...statuses].map((id) => ({ id, text: id }))}
            onChoose={(id) => url.set({ q: withTerm(text, "status", id === "all" ? undefined : id) }, { push: true })}
          />
          <span class="grow" />
          {selected.size > 0 ? (
            <Chosen ids={selected} onDone={() => (setSelected(new Set()), jobs.again())} />
          ) : (
            <BulkOfFilter text={text} filter={filter} onDone={jobs.again} />
          )}
        </div>
      </div>
      {jobs.error === undefined ? null : <Failure error={jobs.error} onAgain={jobs.again} />}
      <Table
        label="Jobs"
        rows={jobs.rows}
        columns={columns}
        idOf={({ id }) => id}
        hrefOf={({ id }) => href(`/jobs/${segment(id)}`)}
        selected={selected}
        onSelect={setSelected}
        onMore={jobs.onMore}
        fresh={text}
        isReading={!jobs.isKnown}
        empty={
          text === "" ? (
            <Empty icon="job" title="No jobs yet" snippet={snippet}>
              A job is something that must happen. Enqueue one in the transaction that makes it necessary.
            </Empty>
          ) : (
            <Empty icon="search" title="No job matches">
              <button type="button" class="link" onClick={() => url.set({ q: null })}>
                Clear the filter
              </button>
            </Empty>
          )
        }
      />
      {isMaking ? <EnqueueDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const columns: readonly Column<Job>[] = [
  { head: "Job", cell: ({ name }) => <bdi>{name}</bdi>, width: "minmax(140px, 1.2fr)" },
  { head: "State", cell: (job) => <Status status={job.status} note={noteOf(job)} />, width: "minmax(120px, 2.4fr)" },
  { head: "Queue", cell: ({ queue }) => <bdi>{queue}</bdi>, width: "minmax(70px, 0.8fr)", minor: true },
  { head: "Attempt", cell: ({ attempt, attempts }) => `${attempt} of ${attempts}`, width: "74px", minor: true },
  { head: "Made", cell: ({ createdAt }) => <Time at={createdAt} />, width: "86px" },
  { head: "Took", cell: ({ run }) => <Took ms={run?.durationMs} />, width: "72px", align: "right", minor: true },
  { head: "Id", cell: ({ id }) => <Id id={id} />, width: "92px", minor: true },
];

/** What a reader wants to know next: why it waits, or why it failed. */
export function noteOf({ status, waitsFor, run, progress, gone }: Job): string | undefined {
  if (status === "waiting") return `for ${waitsFor ?? "something"}`;
  if (status === "running" && gone) return "its process is gone";
  if (status === "running" && progress !== null) return `${Math.round(progress.done * 100)} %`;
  return run?.error?.message.slice(0, 200);
}

const snippet = `await book.write(async (tx) => {
  await tx.jobs.enqueue(sendReceipt, { orderId: "o-17" });
});`;

function Chosen({ ids, onDone }: { readonly ids: ReadonlySet<string>; readonly onDone: () => void }) {
  async function each(verb: "jobs.retry" | "jobs.cancel", done: string): Promise<void> {
    let failed = 0;
    for (const id of ids) await ask(verb, { id }).catch(() => (failed += 1));
    tell(`${done} ${ids.size - failed} of ${ids.size}`, { kind: failed === 0 ? "good" : "bad" });
    onDone();
  }
  return (
    <>
      <span class="soft small">{`${ids.size} selected`}</span>
      <Button icon="retry" hotkey="r" whyNot={whyNot("operate")} onPress={() => each("jobs.retry", "Retried")}>
        Retry
      </Button>
      <Button icon="close" whyNot={whyNot("operate")} onPress={() => each("jobs.cancel", "Cancelled")}>
        Cancel
      </Button>
    </>
  );
}

type BulkOfFilterProps = {
  readonly text: string;
  readonly filter: ReturnType<typeof readJobFilter>;
  readonly onDone: () => void;
};

/** What may be done to all that the filter fits: failed ones can be tried again, open ones cancelled. */
function BulkOfFilter({ text, filter, onDone }: BulkOfFilterProps) {
  const { status, retried: _, ...which } = filter;
  const ended = status?.filter((each) => each === "failed" || each === "cancelled");
  const open = status?.filter((each) => each === "waiting" || each === "queued" || each === "running");
  const gone = status?.filter((each) => each !== "waiting" && each !== "queued" && each !== "running") ?? [];
  const isAbout = (some: readonly string[] | undefined): boolean => status === undefined || (some?.length ?? 0) > 0;
  return (
    <>
      {isAbout(ended) ? (
        <Bulk
          verb="jobs.retryAll"
          input={ended === undefined ? which : { ...which, status: ended }}
          countOf={({ count }) => count}
          act="Retry"
          noun="job"
          what={text}
          icon="retry"
          whyNot={whyNot("operate")}
          onDone={onDone}
        />
      ) : null}
      {isAbout(open) ? (
        <Bulk
          verb="jobs.cancelAll"
          input={open === undefined ? which : { ...which, status: open }}
          countOf={({ count }) => count}
          act="Cancel"
          noun="job"
          what={text}
          icon="close"
          kind="danger"
          whyNot={whyNot("operate")}
          onDone={onDone}
        />
      ) : null}
      {gone.length === 0 && status !== undefined ? null : (
        <Bulk
          verb="jobs.deleteAll"
          input={{ ...(gone.length === 0 ? {} : { status: gone }), ...pick(which) }}
          countOf={({ jobs }) => jobs}
          act="Delete"
          label="Delete ended"
          noun="job"
          what={`${text === "" ? "everything" : text}, of what has ended`}
          icon="trash"
          kind="danger"
          whyNot={whyNot("admin") ?? noDelete(which)}
          onDone={onDone}
        />
      )}
    </>
  );
}

type Which = Omit<ReturnType<typeof readJobFilter>, "status" | "retried">;

function pick({ queue, name }: Which): { queue?: string; name?: string } {
  return { ...(queue === undefined ? {} : { queue }), ...(name === undefined ? {} : { name }) };
}

/** What has ended can be deleted by its state, queue and name: a filter that says more would delete more than it shows. */
function noDelete({ queue: _queue, name: _name, ...more }: Which): string | undefined {
  const [other] = Object.keys(more);
  return other === undefined ? undefined : `Jobs are deleted by state, queue and name, not by ${other}`;
}
