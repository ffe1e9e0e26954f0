// What a user does with jobs, on the book and in a transaction. The verbs are the same in both.
import { invalid, itemOf, notFound } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { didYouMean } from "../core/suggest.ts";
import { pace } from "../storage/slices.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { cancelAll, retryAll, type BulkOptions } from "./bulk.ts";
import { cancelJob } from "./settle/cancel.ts";
import { prepareJob, type AnyJob, type Given, type Job, type EnqueueOptions, type Prepared } from "./define.ts";
import { findDefinition, findRemote, knownJob, neverHosted, storedNames, type ReadRows } from "./definition.ts";
import type { Engine } from "./engine.ts";
import { enqueue, enqueueAll, isFree, type Enqueued, type EnqueueTogether } from "./enqueue.ts";
import { explainJob } from "./explain/explain.ts";
import type { Ports } from "./kind.ts";
import { listJobs, readChain, readJob, type JobFilter } from "./explain/list.ts";
import { editJob, prepareParams, moveJob, prioritiseJob, type MoveTo } from "./line/edit.ts";
import { findJobRow } from "./job.ts";
import { placeOf, pauseName, resumeName } from "./queues.ts";
import { retryJob } from "./settle/settle.ts";
import { recover } from "./settle/rescue.ts";
import { enqueueFrom } from "./template/template.ts";
import { awaitable, awaitResult, type AwaitOptions, type AwaitableJob } from "./result.ts";

/** Verbs that write; in a transaction they are part of it, on the book each commits by itself. */
export type JobVerbs = ReturnType<typeof jobVerbs>;

type Making = {
  /** Makes a job. It will run once the transaction has committed.
   *
   *  ```ts
   *  await tx.jobs.enqueue(sendReceipt, { orderId: "o-17" }, { key: "receipt:o-17" });
   *  ```
   *
   *  Programs that do not have the definition give its name, and any params: the job gets the settings that whoever hosts it
   *  wrote to the book. Should nobody have done so yet, it gets the defaults, and `warning` says so. */
  enqueue<Input, Result>(
    definition: Job<Input, Result> | string,
    ...given: Given<NoInfer<Input>, EnqueueOptions>
  ): Promise<AwaitableJob<NoInfer<Result>>>;
  /** Many jobs of one kind in one transaction. Options that are a function are asked for each of them:
   *  `(params, index) => ({ key: params.orderId })`. */
  enqueueMany<Input, Result>(
    definition: Job<Input, Result> | string,
    params: readonly NoInfer<Input>[],
    options?: EnqueueOptions | ((params: NoInfer<Input>, index: number) => EnqueueOptions),
  ): Promise<AwaitableJob<NoInfer<Result>>[]>;
};

export type Jobs = JobVerbs & ReturnType<typeof jobReads>;

type Awaiting = {
  /** Waits, from any process, until a job has ended with all its retries, and gives what its handler returned.
   *
   *  ```ts
   *  const made = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
   *  await book.startWorker();
   *  const orderId = await book.jobs.result(made, { timeout: "30s" });
   *  ``` */
  result<Result>(job: Enqueued<Result> | string, options?: AwaitOptions): Promise<NoInfer<Result>>;
};

/** How a verb reaches a transaction: the caller's own, or one that it begins. `shared` units may be grouped. */
export type Within = <T>(unit: (tx: Tx) => Promise<T>, how?: { readonly shared: boolean }) => Promise<T>;

export type LookUp = (wanted: AnyJob | string) => Awaitable<AnyJob>;

/** `read` is how definitions are looked up in the book: in a transaction, by it. */
export function jobVerbs(
  engine: Pick<Engine, "store" | "definitions" | keyof Ports>,
  { tenant, strict }: Pick<LookingUp, "tenant" | "strict">,
  within: Within,
  read?: ReadRows,
  enqueueTogether?: EnqueueTogether,
) {
  const { store } = engine;
  const make = async <Result>(tx: Tx, prepared: Prepared): Promise<AwaitableJob<Result>> =>
    awaitable(store, tx.tenant, await enqueue(tx, prepared));
  const known: LookUp = (wanted) => lookUp(engine, wanted, { tenant, strict, read });
  const making: Making = {
    async enqueue(definition: AnyJob | string, params?: unknown, options: EnqueueOptions = {}) {
      const prepared = await prepareJob(await known(definition), params, options);
      // Two processes that enqueue several keys in one transaction each could wait for each other's.
      const shared = isFree(prepared);
      if (shared && enqueueTogether !== undefined) {
        return awaitable(store, tenant, await enqueueTogether(tenant, prepared));
      }
      return within((tx) => make(tx, prepared), { shared });
    },
    async enqueueMany<Result>(
      definition: AnyJob | string,
      list: readonly unknown[],
      options: EnqueueOptions | ((params: never, index: number) => EnqueueOptions) = {},
    ) {
      const found = await known(definition);
      if (!Array.isArray(list)) throw invalid(`the params of many jobs are ${quote(list)}: give a list, one for each`);
      if (list.length > limits.bulkRowsMax) {
        throw invalid(`${list.length} jobs at once: at most ${limits.bulkRowsMax}, send them in parts`);
      }
      const [prepared, turn] = [[] as Prepared[], pace()];
      for (const [index, params] of list.entries()) {
        const each = typeof options === "function" ? options(params as never, index) : options;
        const made = await prepareJob(found, params, each).catch(itemOf("job", index));
        prepared.push(made);
        await turn(made.params);
      }
      return within(async (tx) => {
        const asked = prepared.map((each) => ({ tenant: tx.tenant, prepared: each }));
        return (await enqueueAll(tx, asked)).map((made) => awaitable<Result>(store, tx.tenant, made));
      });
    },
  };
  return {
    ...making,
    /** Makes a job from a template: its params with `overrides` laid over them, its settings unless `options` say otherwise. */
    enqueueFrom: (template: string, overrides?: unknown, options: EnqueueOptions = {}): Promise<AwaitableJob> =>
      enqueueFrom(within, { template, overrides, options, lookUp: known, enqueue: make }),
    cancel: (id: string) => within((tx) => cancelJob(tx, engine, id)),
    /** Continues the last job of a chain that failed or was cancelled; may exceed `attempts`. */
    retry: (id: string): Promise<AwaitableJob> =>
      within(async (tx) => awaitable(store, tx.tenant, await retryJob(tx, id))),
    /** Holds back all jobs of a name, in this tenant. */
    pause: (name: string, note?: string) => within((tx) => pauseName(tx, name, note ?? null)),
    resume: (name: string) => within((tx) => resumeName(tx, name)),
    /** Moves a job that has not started within its queue and priority: to an end of the line, or next to another job.
     *
     *  ```ts
     *  const first = await book.jobs.enqueue(sendReceipt, { orderId: "o-17" });
     *  const second = await book.jobs.enqueue(sendReceipt, { orderId: "o-18" });
     *  await book.jobs.move(second.id, { before: first.id });
     *  ``` */
    move: (id: string, to: MoveTo) => within((tx) => moveJob(tx, id, to)),
    /** Gives a job that has not started another priority; it goes last among those of that priority. */
    prioritise: (id: string, priority: number) => within((tx) => prioritiseJob(tx, id, priority)),
    /** Replaces the params of a job that has not started. It keeps its place; a retry is refused. */
    async edit(id: string, params: unknown) {
      // A schema may take its time, so no transaction is held meanwhile.
      const job = await within((tx) => findJobRow(tx, { tenant: tx.tenant, id }));
      if (job === undefined) throw notFound(`there is no job ${id}`, { id });
      const prepared = await prepareParams(await knownJob(engine, job.name, read), params);
      return within((tx) => editJob(tx, id, prepared));
    },
  };
}

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function jobReads(engine: Engine, tenant: string, seenBy: string | null = null) {
  const { store } = engine;
  const awaiting: Awaiting = {
    result: (job, options) => awaitResult(store, tenant, job, options),
  };
  return {
    ...awaiting,
    get: (id: string) => readJob(store, tenant, id),
    list: (filter: JobFilter = {}) => listJobs(store, tenant, filter),
    /** The chain of retries that a job belongs to, the first one first. */
    chain: (id: string) => readChain(store, tenant, id),
    /** Why a job has not run, or what became of it. */
    explain: (id: string) => explainJob(engine, { tenant, id }, seenBy),
    /** Ends what belongs to sessions that have ended, and what ran for longer than it may. Workers do so by themselves; a dry
     *  run says what they would find. It is about the whole book; on `book.tenant(id)` the counts are of that tenant. */
    recover: (options: { readonly dryRun?: boolean } = {}) => recover(engine, options, seenBy),
    /** Cancels the jobs that a filter fits, those that run included; without a status, all that are open. The newest come first, a
     *  hundred at a time, and what is made meanwhile stays.
     *
     *  ```ts
     *  const { count } = await book.jobs.cancelAll({ queue: "mail" }, { dryRun: true });
     *  ``` */
    cancelAll: (filter: JobFilter, options?: BulkOptions) => cancelAll(engine, tenant, filter, options),
    /** Tries again the jobs that a filter fits; without a status, those that failed. One that was tried again already is passed. */
    retryAll: (filter: JobFilter, options?: BulkOptions) => retryAll(engine, tenant, filter, options),
    /** Where a job stands in line; null when it does not, because it waits, runs or has ended. */
    place: (id: string) => placeOf(store, tenant, id),
  };
}

/** How a definition is looked up: for whom, by which transaction, and whether a name that nobody knows is refused. */
export type LookingUp = { readonly tenant: string; readonly strict: boolean; readonly read?: ReadRows | undefined };

/** The definition that is meant: this process's own, or else the book's, unless `read` finds nothing there, or that of a remote
 *  worker. One by a name that none of them knows only where nothing runs anyway. */
export function lookUp(
  engine: Pick<Engine, "definitions" | "store">,
  wanted: AnyJob | string,
  { tenant, strict, read = (statement) => engine.store.read(statement) }: LookingUp,
): Awaitable<AnyJob> {
  const given = typeof wanted === "string" ? undefined : wanted;
  if (typeof wanted !== "string" && wanted?.kind !== "job") {
    throw invalid(`job is ${quote(wanted)}: give a definition made with job(), or its name`);
  }
  const name = given?.name ?? (wanted as string);
  const here = engine.definitions.get(name);
  if (here !== undefined && given !== undefined && given !== here) {
    throw invalid(`two definitions are named "${name}": enqueue the one that is in "use"`);
  }
  if (here !== undefined) return here;
  if (!strict && given !== undefined) return given;
  const stored = lookInBook(name, { tenant, strict, read }, engine.definitions.keys());
  return given === undefined ? stored : stored.then(() => given);
}

async function lookInBook(
  name: string,
  { tenant, strict, read }: Required<LookingUp> & { readonly read: ReadRows },
  known: Iterable<string>,
): Promise<AnyJob> {
  const stored = (await findDefinition(read, name)) ?? (await findRemote(read, name, tenant));
  if (stored !== undefined) return stored;
  if (!strict) return neverHosted(name);
  const meant = didYouMean(name, [...known, ...(await storedNames(read))]);
  const advice = 'List it in "use", or open the book with worker: false to enqueue for others';
  throw invalid(`this book does not know the job "${name}"${meant} ${advice}`);
}
