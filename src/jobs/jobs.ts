// What a user does with jobs, on the book and in a transaction. The verbs are the same in both.
import { invalid, itemOf } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { nearest } from "../core/suggest.ts";
import type { Tx } from "../storage/store.ts";
import { cancelJob, type Cancelled } from "./cancel.ts";
import { defineJob, type AnyJob, type Given, type Job } from "./define.ts";
import type { Engine } from "./engine.ts";
import { enqueue, enqueueMany, type Enqueued } from "./enqueue.ts";
import { explainJob, type Explanation } from "./explain.ts";
import { findJob, listJobs, readChain, type JobFilter, type JobPage, type JobRecord } from "./list.ts";
import { editJob, nameOfJob, prepareParams, type Edited } from "./line/edit.ts";
import { moveJob, prioritiseJob, type Moved, type MoveTo } from "./line/move.ts";
import { placeOf, type Place } from "./line/place.ts";
import { retryJob } from "./manual-retry.ts";
import { recover, type Recovery } from "./recover.ts";
import { pauseName, resumeName } from "./pause.ts";
import { prune, type Pruned } from "./prune/prune.ts";
import type { PruneOptions } from "./prune/rule.ts";
import { enqueueFrom } from "./template/enqueue-from.ts";
import { prepareJob, type EnqueueOptions, type Prepared } from "./prepare.ts";
import type { AwaitOptions } from "./await-end.ts";
import { awaitable, awaitResult, type AwaitableJob } from "./result.ts";

/** Verbs that write; in a transaction they are part of it, on the book each commits by itself. */
export type JobVerbs = {
  /** Makes a job. It will run once the transaction has committed.
   *
   *  ```ts
   *  await tx.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { key: "receipt:o-17" });
   *  ``` */
  enqueue<Input, Result>(
    definition: Job<Input, Result>,
    ...given: Given<NoInfer<Input>, EnqueueOptions>
  ): Promise<AwaitableJob<Result>>;
  /** By name, for programs that do not have the definition; params are checked when the job runs. */
  enqueue(name: string, params?: unknown, options?: EnqueueOptions): Promise<AwaitableJob>;
  /** Many jobs of one kind in one transaction. Options that are a function are asked for each of them:
   *  `(params, index) => ({ key: params.orderId })`. */
  enqueueMany<Input, Result>(
    definition: Job<Input, Result>,
    params: readonly NoInfer<Input>[],
    options?: EnqueueOptions | ((params: NoInfer<Input>, index: number) => EnqueueOptions),
  ): Promise<AwaitableJob<Result>[]>;
  enqueueMany(
    name: string,
    params: readonly unknown[],
    options?: EnqueueOptions | ((params: unknown, index: number) => EnqueueOptions),
  ): Promise<AwaitableJob[]>;
  /** Makes a job from a template: its default params with `overrides` laid over them, and its settings where `options` say
   *  nothing else. */
  enqueueFrom(template: string, overrides?: unknown, options?: EnqueueOptions): Promise<AwaitableJob>;
  cancel(id: string): Promise<Cancelled>;
  /** Continues the last job of a chain that failed or was cancelled; may exceed `attempts`. */
  retry(id: string): Promise<AwaitableJob>;
  /** Holds back all jobs of a name, in this tenant. */
  pause(name: string, note?: string): Promise<void>;
  resume(name: string): Promise<void>;
  /** Moves a job that has not started within its queue and priority: to an end of the line, or next to another job.
   *
   *  ```ts
   *  const first = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
   *  const second = await book.jobs.enqueue(sendReceipt, { orderId: "o-18" });
   *  await book.jobs.move(second.id, { before: first.id });
   *  ``` */
  move(id: string, to: MoveTo): Promise<Moved>;
  /** Gives a job that has not started another priority; it goes last among those of that priority. */
  prioritise(id: string, priority: number): Promise<Moved>;
  /** Replaces the params of a job that has not started. It keeps its place; a retry is refused. */
  edit(id: string, params: unknown): Promise<Edited>;
};

export type Jobs = JobVerbs & {
  get(id: string): Promise<JobRecord>;
  list(filter?: JobFilter): Promise<JobPage>;
  /** The chain of retries that a job belongs to, the first one first. */
  chain(id: string): Promise<JobRecord[]>;
  /** Why a job has not run, or what became of it. */
  explain(id: string): Promise<Explanation>;
  /** Ends what belongs to sessions that have ended, and what ran for longer than it may. Workers do so by themselves; a dry
   *  run says what they would find. It is about the whole book. */
  recover(options?: { readonly dryRun?: boolean }): Promise<Recovery>;
  /** Removes finished jobs with their runs, in slices of their own transactions. A chain of retries and a group leave as a
   *  whole or not at all.
   *
   *  ```ts
   *  const { jobs } = await book.jobs.prune({ olderThan: "30d", keep: 1000, dryRun: true });
   *  ``` */
  prune(options: PruneOptions): Promise<Pruned>;
  /** Waits, from any process, until a job has ended with all its retries, and gives what its handler returned.
   *
   *  ```ts
   *  const made = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
   *  await book.startWorker();
   *  const orderId = await book.jobs.result(made, { timeout: "30s" });
   *  ``` */
  result<Result>(job: Enqueued<Result>, options?: AwaitOptions): Promise<Result>;
  result(id: string, options?: AwaitOptions): Promise<unknown>;
  /** Where a job stands in line; null when it does not, because it waits, runs or has ended. */
  place(id: string): Promise<Place | null>;
};

/** How a verb reaches a transaction: the caller's own, or one that it begins. `shared` units may be grouped. */
export type Within = <T>(unit: (tx: Tx) => Promise<T>, how: { shared: boolean }) => Promise<T>;

export function jobVerbs(
  engine: Pick<Engine, "store" | "definitions" | "hooks">,
  strict: boolean,
  within: Within,
): JobVerbs {
  const { store } = engine;
  const make = async <Result>(tx: Tx, prepared: Prepared): Promise<AwaitableJob<Result>> =>
    awaitable(store, tx.tenant, await enqueue(tx, prepared));
  const known = (definition: AnyJob | string): AnyJob => lookUp(engine, definition, strict);
  return {
    async enqueue(definition: AnyJob | string, params?: unknown, options: EnqueueOptions = {}) {
      const prepared = await prepareJob(known(definition), params, options);
      // Two processes that enqueue several keys in one transaction each could wait for each other's.
      const shared = prepared.key === null && prepared.idempotencyKey === null;
      return within((tx) => make(tx, prepared), { shared });
    },
    async enqueueMany<Result>(
      definition: AnyJob | string,
      list: readonly unknown[],
      options: EnqueueOptions | ((params: never, index: number) => EnqueueOptions) = {},
    ) {
      const found = known(definition);
      if (!Array.isArray(list)) throw invalid(`the params of many jobs are ${quote(list)}: give a list, one for each`);
      if (list.length > limits.bulkRowsMax) {
        throw invalid(`${list.length} jobs at once: at most ${limits.bulkRowsMax}, send them in parts`);
      }
      const prepared: Prepared[] = [];
      for (const [index, params] of list.entries()) {
        const each = typeof options === "function" ? options(params as never, index) : options;
        prepared.push(await prepareJob(found, params, each).catch(itemOf("job", index)));
      }
      const makeAll = async (tx: Tx): Promise<AwaitableJob<Result>[]> =>
        (await enqueueMany(tx, prepared)).map((made) => awaitable(store, tx.tenant, made));
      return within(makeAll, { shared: false });
    },
    enqueueFrom: (template, overrides, options = {}) =>
      enqueueFrom(within, { template, overrides, options, lookUp: known, enqueue: make }),
    cancel: (id) => within((tx) => cancelJob(tx, engine.hooks, id), { shared: false }),
    retry: (id) => within(async (tx) => awaitable(store, tx.tenant, await retryJob(tx, id)), { shared: false }),
    pause: (name, note) => within((tx) => pauseName(tx, name, note ?? null), { shared: false }),
    resume: (name) => within((tx) => resumeName(tx, name), { shared: false }),
    move: (id, to) => within((tx) => moveJob(tx, id, to), { shared: false }),
    prioritise: (id, priority) => within((tx) => prioritiseJob(tx, id, priority), { shared: false }),
    async edit(id, params) {
      // A schema may take its time, so no transaction is held meanwhile.
      const name = await within((tx) => nameOfJob(tx, id), { shared: false });
      const prepared = await prepareParams(engine.definitions.get(name), params);
      return within((tx) => editJob(tx, id, prepared), { shared: false });
    },
  };
}

export function jobReads(engine: Engine, tenant: string): Omit<Jobs, keyof JobVerbs> {
  const { store } = engine;
  return {
    get: (id) => findJob(store, tenant, id),
    list: (filter = {}) => listJobs(store, tenant, filter),
    chain: (id) => readChain(store, tenant, id),
    explain: (id) => explainJob(store, tenant, id),
    recover: (options = {}) => recover(engine, options),
    prune: (options) => prune(store, tenant, engine.files, options ?? {}, engine.hooks.onPruned),
    result: (job: string | Enqueued, options?: AwaitOptions) => awaitResult(store, tenant, job, options),
    place: (id) => placeOf(store, tenant, id),
  };
}

/** The definition that is meant; one by a name that is not known here only where nothing runs anyway. */
export function lookUp(engine: Pick<Engine, "definitions">, wanted: AnyJob | string, strict: boolean): AnyJob {
  if (typeof wanted !== "string" && wanted?.kind !== "job") {
    throw invalid(`job is ${quote(wanted)}: give a definition made with job(), or its name`);
  }
  const name = typeof wanted === "string" ? wanted : wanted.name;
  const found = engine.definitions.get(name);
  if (typeof wanted !== "string") {
    if (found === wanted || (found === undefined && !strict)) return wanted;
    if (found !== undefined) throw invalid(`two definitions are named "${name}": enqueue the one that is in "use"`);
  } else if (found !== undefined) return found;
  if (!strict) return defineJob(name, { run: () => undefined });
  const near = nearest(name, [...engine.definitions.keys()]);
  throw invalid(
    `this book does not know the job "${name}"${near === undefined ? "." : `: did you mean "${near}"?`}` +
      ' List it in "use", or open the book with worker: false to enqueue for others',
  );
}
