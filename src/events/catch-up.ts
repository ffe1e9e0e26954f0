// Catch-up: a listener that begins in the past gets deliveries of past events from a job of its own name, one transaction per
// slice. Until it has all of them, publishers make no delivery for it. With the last slice it goes live, while publishers are
// kept out. So every event has one delivery, whichever way it came.
//
//   heard_seq ── slice ──► heard_to      everything up to `heard_to` was committed when it was set, so no event that is
//                                        committed late is missed
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import { laneOf } from "../jobs/claim/lane.ts";
import type { RunContext } from "../jobs/run/run.ts";
import type { Engine } from "../jobs/engine.ts";
import { insertJobs, type NewJob } from "../jobs/enqueue.ts";
import { plainKind, type Ended, type JobKind } from "../jobs/kind.ts";
import { jobsChannel, type JobRow } from "../jobs/job.ts";
import { deliverAgain, lastDeliveries } from "./dead-letters.ts";
import { letAllGo } from "./delivery.ts";
import { catchUpKind, type EventRow } from "./event.ts";
import { topicsOf, closeListeners, deliveryName, lastSeq, stampListeners, type ListenerRow } from "./listener.ts";
import { newDelivery, type Delivered } from "./publish.ts";
import { matchesTopic } from "./topic.ts";

export type CatchUpParams = { readonly catchUp: number };

/** Makes the catch-up job of a listener, unless it has an open one. */
export async function beginCatchUp(tx: Tx, listener: ListenerRow): Promise<void> {
  const { tenant_id: tenant, seq } = listener;
  const open = await tx.get(sql`select seq from daybook_line where kind = ${catchUpKind} and kind_seq = ${seq}
    and kind is not null limit 1`);
  if (open !== undefined) return;
  const job: NewJob = {
    tenant_id: tenant,
    id: tx.ids(),
    lane_seq: await laneOf(tx, tenant, listener.queue),
    name: deliveryName(listener.name),
    status: "queued",
    waits_for: null,
    waits_key: null,
    priority: 0,
    created_at: tx.now,
    available_at: tx.now,
    params: JSON.stringify({ catchUp: seq }),
    // It fails only when the book cannot be used, and a retry goes on where it stopped.
    attempts: 1000,
    losses_max: 100,
    backoff: '{"base":1000,"max":60000}',
    timeout_ms: null,
    kind: catchUpKind,
    kind_seq: seq,
  };
  await insertJobs(tx, [job]);
  tx.wake(jobsChannel);
}

/** The run of that job. It may be killed at any point; a retry goes on after the last committed slice. */
export async function catchUp(engine: Engine, { catchUp: seq }: CatchUpParams, context: RunContext): Promise<void> {
  const { signal, job } = context;
  for (;;) {
    signal.throwIfAborted();
    const step = await engine.store.write((tx) => hearSlice(tx, seq), { tenant: job.tenant });
    if (step === "done") return;
    if (step === "more") continue;
    signal.throwIfAborted();
    if ((await engine.store.write((tx) => goLive(tx, seq), { tenant: job.tenant })) === "done") return;
  }
}

type Step = "more" | "last" | "done";

async function hearSlice(tx: Tx, seq: number): Promise<Step> {
  const listener = await hold(tx, seq);
  if (listener === undefined) return "done";
  const heard = await hear(tx, listener, listener.heard_to ?? 0);
  if (heard === undefined) return "last";
  await tx.run(sql`update daybook_listener set heard_seq = ${heard.last} where seq = ${seq}`);
  await letAllGo(tx, heard.waiting);
  return "more";
}

// Publishers wait meanwhile, so this must be short: if more than a slice is left, it lets them go on first.
async function goLive(tx: Tx, seq: number): Promise<Step> {
  await closeListeners(tx);
  const listener = await hold(tx, seq);
  if (listener === undefined) return "done";
  const to = await lastSeq(tx, listener.tenant_id);
  const heard = await hear(tx, listener, to);
  const isLast = heard === undefined || heard.last >= to;
  if (isLast) {
    await tx.run(
      sql`update daybook_listener set heard_seq = ${to}, heard_to = null, state = 'live' where seq = ${seq}`,
    );
    await stampListeners(tx);
  } else {
    await tx.run(sql`update daybook_listener set heard_seq = ${heard.last}, heard_to = ${to} where seq = ${seq}`);
  }
  await letAllGo(tx, heard?.waiting ?? []);
  return isLast ? "done" : "more";
}

/** Jobs that bring a listener into the past, as a kind. */
export const catchUps: JobKind = { ...plainKind, ended: catchUpEnded };

/** Runs when the job ends. A rewind in its last moment saw the open job and made no other, so this makes one. */
async function catchUpEnded(tx: Tx, ended: readonly Ended[]): Promise<void> {
  for (const { job, outcome } of ended) {
    const listener = outcome.status === "completed" ? await hold(tx, job.kind_seq ?? 0) : undefined;
    if (listener !== undefined) await beginCatchUp(tx, listener);
  }
}

/** The listener, locked, while it catches up. Asked for by its number alone: PostgreSQL passes by a row that did not fit when the
 *  statement began, and would miss a rewind that is about to commit. */
async function hold(tx: Tx, seq: number): Promise<ListenerRow | undefined> {
  const listener = await tx.get<ListenerRow>(sql`select * from daybook_listener where seq = ${seq} ${forUpdate}`);
  return listener?.state === "catching_up" ? listener : undefined;
}

type Said = Delivered & Pick<EventRow, "topic" | "published_at">;

type Heard = {
  /** The number of the slice's last event. */
  readonly last: number;
  /** Open deliveries from before that wait for the order of their key. */
  readonly waiting: readonly JobRow[];
};

/** Makes the deliveries of one slice up to `to`; undefined when none is left. */
async function hear(tx: Tx, listener: ListenerRow, to: number): Promise<Heard | undefined> {
  const said = await tx.all<Said>(sql`select seq, tenant_id, id, topic, priority, key, published_at, available_at,
      cause_run_id, root_run_id from daybook_event
    where tenant_id = ${listener.tenant_id} and seq > ${listener.heard_seq} and seq <= ${to}
    order by seq limit ${limits.catchUpEventsMax}`);
  const last = said.at(-1)?.seq;
  if (last === undefined) return undefined;
  const topics = topicsOf(listener);
  const from = listener.starts_at ?? Number.NEGATIVE_INFINITY;
  const jobs: NewJob[] = [];
  for (const event of said) {
    if (event.published_at < from || !topics.some((pattern) => matchesTopic(pattern, event.topic))) continue;
    jobs.push(await newDelivery(tx, listener, event));
  }
  return { last, waiting: await bring(tx, listener, jobs) };
}

// After a rewind, an event that was delivered before is delivered again as the next job of its chain, unless that delivery is
// still open.
async function bring(tx: Tx, listener: ListenerRow, jobs: readonly NewJob[]): Promise<JobRow[]> {
  if (jobs.length === 0) return [];
  const events = jobs.map((job) => job.kind_seq ?? 0);
  const known = await lastDeliveries(tx, listener, events);
  const first = jobs.filter((job) => !known.has(job.kind_seq ?? 0));
  if (first.length > 0) await insertJobs(tx, first);
  for (const last of known.values()) if (last.finished_at !== null) await deliverAgain(tx, listener, last);
  tx.wake(jobsChannel);
  return [...known.values()].filter((last) => last.finished_at === null && last.waits_for === "order");
}
