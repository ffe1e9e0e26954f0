// Steps: parts of a handler whose results are kept, so that the next run of the chain goes on where this one ended. A
// step belongs to the chain of retries and to its place, which is how many steps the run had called before it.
//
//   called ──► place ──► kept by an earlier run? ──► yes: its result, nothing runs
//                                               └──► no: run, keep the result if the job is still ours
import { AsyncLocalStorage } from "node:async_hooks";
import { DaybookError, conflict, invalid } from "../../core/error.ts";
import { killPoint } from "../../core/fact.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { sql } from "../../storage/sql.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import { forShare } from "../../storage/word.ts";
import type { ClaimedJob } from "../claim/claim.ts";
import { resultJson, logRefused, endingOf, type RunState, type Noting } from "./run.ts";
import type { Engine } from "../engine.ts";
import { rememberFor } from "../../core/remember.ts";
import { jobsChannel, type JobRow } from "../job.ts";
import { offerFreeKeys, takePermitsBack } from "../wait/park.ts";
import { permitsOf } from "../claim/limit.ts";
import { gateOf, settle, readInteresting, follow, type Ending } from "../settle/settle.ts";
import { freeKeys } from "../key.ts";
import { kindOf, type Ports } from "../kind.ts";
import { lockWithOther } from "../lock-order.ts";
import { endRuns, tie } from "../state.ts";

/** `Transaction` is what the front door gives to `write`; this room only passes it on. */
export type Step<Transaction> = {
  /** Runs `work` and keeps what it returns. A later run of the same job (a retry, also after a loss) gets the kept result
   *  instead of running it. `work` may run again when the process dies before its result is on disk.
   *
   *  `const charged = await step("charge", () => bank.charge(card, cents));` */
  <T>(name: string, work: () => Awaitable<T>): Promise<T>;
  /** The same in one transaction with what `work` writes: its effects in the book happen exactly once. */
  write<T>(name: string, work: (tx: Transaction) => Awaitable<T>): Promise<T>;
};

type Call = { readonly state: RunState; readonly name: string; ended: boolean };

const calls = new AsyncLocalStorage<Call>();

export function createStep(engine: Engine, state: RunState): Step<Tx> {
  const { store } = engine;
  const { job } = state;
  const emptied = new Map<string, number[]>();
  let called = 0;

  // Everything up to the first await happens in the call itself, so that steps that are started together get their places
  // in the order in which they stand in the handler.
  async function once<T>(name: string, work: unknown, run: (place: number) => Promise<string | null>): Promise<T> {
    check(name, work);
    const place = emptied.get(name)?.shift() ?? called++;
    // The first run of a chain finds nothing, so it does not look.
    const [kept] =
      job.chain_seq === null
        ? []
        : await store.read<KeptStep>(sql`select name, result from daybook_job_step
            where tenant_id = ${job.tenant_id} and chain_seq = ${job.chain_seq} and place = ${place}`);
    if (kept !== undefined && kept.name !== name) throw otherOrder(job.id, place, { was: kept.name, is: name });
    if (kept !== undefined) return read(kept.result);
    // A run that is asked to end does no more of its work; what is kept so far is not lost.
    if (state.abortReason !== undefined) throw state.abortReason;
    let result: string | null;
    try {
      result = await run(place);
    } catch (error) {
      // Its place is empty: called again, it takes the same one, so that later runs find it there.
      const places = [...(emptied.get(name) ?? []), place].toSorted((a, b) => a - b);
      emptied.set(name, places);
      throw error;
    }
    killPoint("jobs.step.kept");
    return read(result);
  }

  function check(name: string, work: unknown): void {
    checkName(name, "step name");
    if (typeof work !== "function") throw invalid(`step "${name}" has no function: step("${name}", () => …)`);
    refuseInsideStep(state, `step "${name}"`);
    refuseInsideUnit(`step "${name}"`, store, "call it before or after, because it commits by itself");
    if (state.settled) throw invalid(`job ${job.id} has been finished already: step "${name}" must come before finish`);
    if (called < limits.stepsMax) return;
    throw invalid(`job ${job.id} has more than ${limits.stepsMax} steps: make jobs of some of them`);
  }

  async function perform(name: string, work: () => unknown): Promise<string | null> {
    const made = await inStep(state, name, work);
    const what = `result of step ${quote(name)}`;
    const result = made === undefined ? null : toJson(made, { what, bytesMax: limits.resultBytesMax });
    killPoint("jobs.step.ran");
    return result;
  }

  return Object.assign(
    <T>(name: string, work: () => Awaitable<T>): Promise<T> =>
      once(name, work, async (place) => {
        const result = await perform(name, work);
        const keep = (tx: Tx): Promise<void> => keepStep(tx, job, { place, name, result });
        await store.write(keep, { tenant: job.tenant_id, beat: false });
        return result;
      }),
    {
      write: <T>(name: string, work: (tx: Tx) => Awaitable<T>): Promise<T> =>
        once(name, work, (place) => {
          const unit = async (tx: Tx): Promise<string | null> => {
            const result = await perform(name, () => work(tx));
            await keepStep(tx, job, { place, name, result });
            return result;
          };
          return store.write(unit, { by: "user", tenant: job.tenant_id });
        }),
    },
  );
}

/** Throws when called from inside a step of the same run: it could not be kept without what is around it. */
export function refuseInsideStep(state: RunState, what: string): void {
  const call = calls.getStore();
  if (call?.state !== state || call.ended) return;
  throw invalid(`${what} was called inside step "${call.name}": call it after that, with what the step returned`);
}

async function inStep<T>(state: RunState, name: string, work: () => Awaitable<T>): Promise<T> {
  const call: Call = { state, name, ended: false };
  try {
    return await calls.run(call, async () => work());
  } finally {
    call.ended = true;
  }
}

// What was kept is what every run gets, also the one that made it: a replay must not see anything else.
function read<T>(result: string | null): T {
  return (result === null ? undefined : JSON.parse(result)) as T;
}

function otherOrder(id: string, place: number, { was, is }: { was: string; is: string }): DaybookError {
  const found = `but an earlier run of its chain kept ${quote(was)} at that place (counted from 0)`;
  const advice = "call steps in the same order in every run, or give the changed work another job name";
  const error = conflict(`step ${place} of job ${id} is ${quote(is)}, ${found}: ${advice}`, { id, place, was, is });
  return Object.defineProperty(error, "name", { value: "StepOrderError" });
}

// A step that is on disk is one row for each place of a chain.
type KeptStep = { readonly name: string; readonly result: string | null };

/** Keeps a step of a run that is still ours. On PostgreSQL the lock makes the transaction that ends the run wait for our commit, or us
 *  for its: a step of a lost owner must not appear after the next run has looked for it. */
export async function keepStep(
  tx: Tx,
  job: Pick<ClaimedJob, "id" | "seq" | "run_id">,
  { place, name, result }: KeptStep & { readonly place: number },
): Promise<void> {
  const kept =
    await tx.run(sql`insert into daybook_job_step (tenant_id, chain_seq, place, name, result, run_id, done_at)
    select job.tenant_id, coalesce(job.chain_seq, job.seq), ${place}, ${name}, ${result}, held.run_id, ${tx.now}
    from (select seq, run_id from daybook_line
      where seq = ${job.seq} and run_id = ${job.run_id} and started_at is not null ${forShare}) as held
    cross join daybook_job job where job.seq = held.seq`);
  if (kept === 1) return;
  const lost = `job ${job.id} is no longer this process's, so step "${name}" was not kept`;
  throw conflict(`${lost}: it was cancelled, timed out or lost`, { id: job.id, place, step: name });
}

// finish: the handler's effects and the completion of its job are one commit. Killed at any point, either both are in the book or
// neither is, and then the job is tried again.

export async function finishRun<T>(
  engine: Engine,
  state: RunState,
  parts: Noting,
  work: (tx: Tx) => Awaitable<T>,
): Promise<T> {
  const { job } = state;
  refuseInsideStep(state, "finish");
  if (state.settled) throw invalid(`job ${job.id} has been finished already: call finish once, as the last thing`);
  let kept: ReturnType<typeof resultJson> = {};
  const serializable = engine.store.dialect === "postgres";
  const result = await engine.store.write(
    async (tx) => {
      const made = await work(tx);
      killPoint("jobs.finish.worked");
      kept = resultJson(made);
      const ending = { ...endingOf(engine, state, "success", kept), job };
      const ours = serializable
        ? await settleInUserTx(tx, engine, ending)
        : (await settle(tx, engine, [ending])).late.size === 0;
      if (!ours) {
        throw new DaybookError(
          "conflict",
          `job ${job.id} is no longer this process's, so nothing of finish was kept: it was cancelled, timed out or lost`,
          { details: { id: job.id } },
        );
      }
      killPoint("jobs.finish.settled");
      return made;
    },
    // That others kept getting in the way is no failure of the job, and its effects outside must not be repeated.
    { by: "user", tenant: job.tenant_id, tryOn: () => state.abortReason === undefined },
  );
  killPoint("jobs.finish.committed");
  state.settled = true;
  logRefused(kept, state, parts);
  // Awaited as part of the run: a worker is idle only once the jobs that waited for it have been let in.
  if (serializable) await followerOf(engine)(job);
  return result;
}

type Finished = RunState["job"];

/** Does for the jobs that wait what the transaction of a finish leaves to be done. Whatever finishes meanwhile is done together. */
const followerOf = rememberFor((engine: Engine) => gathered((jobs: readonly Finished[]) => letOthersIn(engine, jobs)));

function gathered<T>(work: (all: readonly T[]) => Promise<void>): (one: T) => Promise<void> {
  let waiting: T[] = [];
  let next: Promise<void> | undefined;
  let last = Promise.resolve();
  return (one) => {
    waiting.push(one);
    return (next ??= last.then(() => {
      const all = waiting;
      waiting = [];
      next = undefined;
      // Should it fail, the sweep does it.
      return (last = work(all).catch(() => undefined));
    }));
  };
}

async function letOthersIn(engine: Engine, jobs: readonly Finished[]): Promise<void> {
  const { store } = engine;
  const limited = jobs.filter((job) => job.limits !== null);
  const gated = limited.length > 0 || (await store.read(gateOf(jobs.map((job) => job.lane_seq)))).length > 0;
  if (!gated) return;
  await store.write(async (tx) => {
    await offerFreeKeys(tx, limited.flatMap(permitsOf));
    for (const job of limited) await kindOf(engine, job).finished(tx, job);
    // A claim that found a limit locked by us left its jobs in line; and a place may be free in a lane that has few, or is reserved.
    tx.wake(jobsChannel);
  });
}

/** Ends one run in its user's serializable transaction, and says whether it was still ours. PostgreSQL runs the user's function again
 *  when another transaction writes what this one reads, so the settle touches only its own job's rows, each by its number, and one
 *  row of its group. The caller lets in the jobs that wait once all of it is on disk. */
export async function settleInUserTx(
  tx: Tx,
  ports: Ports,
  ending: Ending & { readonly job: ClaimedJob },
): Promise<boolean> {
  const { job } = ending;
  await tx.userDone();
  // On the wire in this order, which is that of the locks.
  const [, goesOn, facts, { more, late }] = await Promise.all([
    kindOf(ports, job).hold(tx, job.kind_seq),
    groupGoesOn(tx, job),
    ports.announce?.wantsJobs(tx) ?? false,
    endRuns(tx, [ending]),
    freeKeys(tx, [job]),
    takePermitsBack(tx, [job]),
  ]);
  if (late.size > 0) return false;
  const decided = more.map((job) => ({ ...job, ties: goesOn ? 0 : job.ties & tie.group }));
  const ends = { endings: [ending], more: decided, late, facts };
  const rows = await readInteresting(tx, ports, ends);
  await follow(tx, ports, ends, goesOn ? rows.map((row) => ({ ...row, group_seq: null })) : rows);
  return true;
}

// Of those that run side by side only the last one decides about its group. Two that end at once would each see the other as it
// was when they began: so they take turns from here to their commit, and lock the one that they see.
async function groupGoesOn(tx: Tx, { seq, group_seq }: Pick<JobRow, "seq" | "group_seq">): Promise<boolean> {
  if (group_seq === null) return true;
  const [group, hasOther] = await Promise.all([
    tx.get<{ mode: string }>(sql`select mode from daybook_job_group job_group where seq = ${group_seq} for update`),
    lockWithOther(tx, seq, group_seq),
  ]);
  return group?.mode === "parallel" && hasOther;
}
