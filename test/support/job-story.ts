// Compares what the book says about jobs and runs with the ledgers of those who did the work.
import assert from "node:assert/strict";
import type { Book } from "../../src/index.ts";
import { readLedgers, type Entry } from "./job-ledger.ts";
import type { JobProcess } from "./job-process.ts";
import { until } from "./session-row.ts";

export type JobLine = {
  seq: number;
  id: string;
  name: string;
  status: string;
  attempt: number;
  losses: number;
  losses_max: number;
  alone: number;
  retry_of: number | null;
  run_id: string | null;
};

export type RunLine = { id: string; job_id: string; status: string; pid: number };

export type Story = {
  readonly jobs: readonly JobLine[];
  readonly runs: readonly RunLine[];
  readonly entries: readonly Entry[];
};

export async function readStory(book: Book, folder: string): Promise<Story> {
  return book.read(async (tx) => ({
    jobs: await tx.sql<JobLine>`select seq, id, name, status, attempt, losses, losses_max, alone, retry_of, run_id
      from daybook_job_now order by seq`,
    runs: await tx.sql<RunLine>`select run.id, job.id as job_id, run.status, session.pid
      from daybook_run run join daybook_job job on job.seq = run.job_seq join daybook_session session on session.seq = run.session_seq order by run.seq`,
    entries: readLedgers(folder),
  }));
}

export async function countOpen(book: Book): Promise<number> {
  const [row] = await book.read(
    (tx) =>
      tx.sql<{ n: number }>`select count(*) as n from daybook_job_now where status in ('waiting', 'queued', 'running')`,
  );
  return row?.n ?? 0;
}

/** Resolves once every job has ended. Sessions that died are looked for at once rather than every few seconds. As long as
 *  jobs end there is no hurry; it gives up when none has for `ms`. */
export async function untilAllEnded(book: Book, { ms = 30_000 }: { ms?: number } = {}): Promise<void> {
  let left = -1;
  while (left !== 0) {
    const before = left;
    const ask = async (): Promise<number | undefined> => {
      await book.sessions.look();
      const now = await countOpen(book);
      return now === before ? undefined : now;
    };
    left = await until(`the last ${before} jobs end`, ask, { ms });
  }
}

/** J8: what was acknowledged exists, and all of it ended well. */
export function assertNothingLost({ jobs, entries }: Story): number {
  const acknowledged = entries.filter(({ deed }) => deed === "ack");
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const retryOf = new Map(jobs.flatMap((job) => (job.retry_of === null ? [] : [[job.retry_of, job]])));
  for (const { jobId } of acknowledged) {
    let last = byId.get(jobId);
    assert.ok(last !== undefined, `job ${jobId} was acknowledged and is not in the book`);
    for (let next = retryOf.get(last.seq); next !== undefined; next = retryOf.get(next.seq)) last = next;
    assert.equal(last.status, "completed", `the chain of ${jobId} ended with ${last.id} as ${last.status}`);
  }
  return acknowledged.length;
}

/** P2, J4, J12: a job is executed at most once, every execution is recorded, and by the process that did it. Only a
 *  process that was killed leaves a run that is lost. */
export function assertRecorded({ jobs, runs, entries }: Story, killed: ReadonlySet<number>): void {
  const runOf = new Map(runs.map((run) => [run.id, run]));
  const started = new Map<string, Entry>();
  const ended = new Set(entries.filter(({ deed }) => deed === "end").map(({ runId }) => runId));
  for (const entry of entries.filter(({ deed }) => deed === "start")) {
    const before = started.get(entry.jobId);
    assert.equal(before, undefined, `job ${entry.jobId} was executed twice: ${JSON.stringify([before, entry])}`);
    started.set(entry.jobId, entry);
    const run = runOf.get(entry.runId);
    assert.ok(run !== undefined, `nothing is recorded of the execution ${JSON.stringify(entry)}`);
    assert.deepEqual([run.job_id, run.pid], [entry.jobId, entry.pid], "recorded for somebody else");
    if (!ended.has(entry.runId)) assert.equal(run.status, "lost", `run ${run.id} did not get to its end`);
  }
  for (const run of runs) {
    if (run.status === "lost") assert.ok(killed.has(run.pid), `run ${run.id} of a living process was lost`);
    else assert.equal(run.status, "success");
    if (run.status === "success") assert.equal(started.get(run.job_id)?.runId, run.id, `run ${run.id} did not happen`);
  }
  assert.equal(new Set(runs.map((run) => run.job_id)).size, runs.length, "a job has two runs");
  assert.equal(runs.length, jobs.filter(({ run_id }) => run_id !== null).length);
}

/** J13: of jobs with one key, one runs at a time. A process that was killed ran until then. Returns how many were seen. */
export function assertOneAtATime({ entries }: Story, processes: readonly JobProcess[]): number {
  const killedAt = new Map(processes.map(({ pid, killedAtMs }) => [pid, killedAtMs]));
  const endOf = new Map(entries.filter(({ deed }) => deed === "end").map((entry) => [entry.runId, entry.atMs]));
  const busyUntil = new Map<string, { untilMs: number; entry: Entry }>();
  let seen = 0;
  for (const entry of entries.filter(({ deed, key }) => deed === "start" && key.startsWith("key-"))) {
    const before = busyUntil.get(entry.key);
    assert.ok(
      before === undefined || before.untilMs <= entry.atMs,
      `two ran with one key at once: ${JSON.stringify([before, entry])}`,
    );
    busyUntil.set(entry.key, { untilMs: endOf.get(entry.runId) ?? killedAt.get(entry.pid) ?? Infinity, entry });
    seen++;
  }
  return seen;
}
