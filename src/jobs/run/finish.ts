// finish: the handler's effects and the completion of its job are one commit. Killed at any point, either both are in the book or
// neither is, and then the job is tried again.
import { rememberFor } from "../../core/remember.ts";
import { DaybookError, invalid } from "../../core/error.ts";

import { type RunState, type Noting, resultJson, logRefused, endingOf } from "./run.ts";
import { jobsChannel, type JobRow } from "../job.ts";
import type { Engine } from "../engine.ts";
import { killPoint } from "../../core/fault.ts";
import type { Awaitable, Tx } from "../../storage/store.ts";
import { offerFreeKeys, takePermitsBack } from "../wait/park.ts";
import { permitsOf } from "../claim/limit.ts";
import { gateOf, settle, readInteresting, follow } from "../settle/settle.ts";
import { refuseInsideStep } from "./step.ts";
import { sql } from "../../storage/sql.ts";
import type { ClaimedJob } from "../claim/claim.ts";

import { freeKeys } from "../key.ts";
import { kindOf, type Ports } from "../kind.ts";
import { lockWithOther } from "../lock-order.ts";
import type { Ending } from "../settle/outcome.ts";
import { endRuns, tie } from "../state.ts";

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
  // Awaited as part of the run: a worker is idle only once those who waited for it have been let in.
  if (serializable) await followerOf(engine)(job);
  return result;
}

type Finished = RunState["job"];

/** Does for those who wait what the transaction of a finish leaves to be done. Whatever finishes meanwhile is done together. */
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
    // Whoever found a limit locked by us left its jobs in line; and a place may be free in a lane that has few, or is reserved.
    tx.wake(jobsChannel);
  });
}

/** Ends one run in its user's serializable transaction, and says whether it was still ours. PostgreSQL runs the user's function again
 *  when another transaction writes what this one reads, so the settle touches only its own job's rows, each by its number, and one
 *  row of its group. The caller lets in those who wait once all of it is on disk. */
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
