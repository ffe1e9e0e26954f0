// finish: the handler's effects and the completion of its job are one commit. Killed at any point, either both are in
// the book or neither is, and then the job is tried again.
import { DaybookError, invalid } from "../core/error.ts";
import { killPoint } from "../core/fault.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import type { ContextParts, RunState } from "./context.ts";
import type { Engine } from "./engine.ts";
import { jobsChannel } from "./job.ts";
import { offerFreeKeys } from "./let-in.ts";
import { permitsOf } from "./limit.ts";
import { endingOf, logRefused, resultJson } from "./run.ts";
import { gateOf, settle, settleInUserTx } from "./settle.ts";
import { refuseInsideStep } from "./step.ts";

export async function finishRun<T>(
  engine: Engine,
  state: RunState,
  parts: Pick<ContextParts, "now" | "changed">,
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
      const ending = endingOf(engine, state, "success", kept);
      const ours = serializable
        ? await settleInUserTx(tx, engine.hooks, ending, job)
        : (await settle(tx, engine.hooks, [ending])).late.size === 0;
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

const followers = new WeakMap<Store, (job: Finished) => Promise<void>>();

/** Does for those who wait what the transaction of a finish leaves to be done. Whatever finishes meanwhile is done together. */
function followerOf(engine: Engine): (job: Finished) => Promise<void> {
  let follow = followers.get(engine.store);
  if (follow === undefined) followers.set(engine.store, (follow = gathered((jobs) => letOthersIn(engine, jobs))));
  return follow;
}

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

async function letOthersIn({ store, hooks }: Engine, jobs: readonly Finished[]): Promise<void> {
  const limited = jobs.filter((job) => job.limits !== null);
  const gated = limited.length > 0 || (await store.read(gateOf(jobs.map((job) => job.lane_seq)))).length > 0;
  if (!gated) return;
  await store.write(async (tx) => {
    await offerFreeKeys(tx, limited.flatMap(permitsOf));
    for (const job of limited) if (job.kind !== null) await hooks.afterFinish?.[job.kind]?.(tx, job);
    // Whoever found a limit locked by us left its jobs in line; and a place may be free in a lane that has few, or is reserved.
    tx.wake(jobsChannel);
  });
}
