// finish: the handler's effects and the completion of its job are one commit. Killed at any point, either both are in
// the book or neither is, and then the job is tried again.
import { DaybookError, invalid } from "../core/error.ts";
import { killPoint } from "../core/fault.ts";
import { sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { ContextParts, RunState } from "./context.ts";
import type { Engine } from "./engine.ts";
import type { OrderedJob } from "./hooks.ts";
import { jobsChannel } from "./job.ts";
import { limitKeysOf, type Limited } from "./limit.ts";
import { releaseFreeKey } from "./limit-sweep.ts";
import { endingOf, logRefused, resultJson } from "./run.ts";
import { settle } from "./settle.ts";
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
  const result = await engine.store.write(
    async (tx) => {
      const made = await work(tx);
      killPoint("jobs.finish.worked");
      kept = resultJson(made);
      const { late } = await settle(tx, engine.hooks, [endingOf(engine, state, "success", kept)]);
      if (late.size > 0) {
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
  // Part of the run, so that a worker is not idle before it.
  if (engine.store.dialect === "postgres") {
    if (job.limits !== null) await letIn(engine, job).catch(() => undefined);
    await wakeHolder(engine, job).catch(() => undefined);
  }
  return result;
}

// A serializable transaction does not see who was parked after it began, not even behind the lock of the limit, so the
// slot is offered once more. Should this fail, the sweep does it.
async function letIn(engine: Engine, job: Limited & OrderedJob): Promise<void> {
  await engine.store.write(async (tx) => {
    if (job.kind !== null) await engine.hooks.afterFinish?.[job.kind]?.(tx, job);
    for (const key of limitKeysOf(job)) await releaseFreeKey(tx, { tenant: job.tenant_id, key });
    // Whoever found the limit locked by us left its jobs in line, and need not wait to try again.
    tx.wake(jobsChannel);
  });
}

// For the same reason it does not see a reservation that was made meanwhile, whose holder waits for the lane to be empty.
async function wakeHolder(engine: Engine, job: RunState["job"]): Promise<void> {
  const [held] = await engine.store.read<{ seq: number }>(
    sql`select seq from daybook_reservation where lane_seq = ${job.lane_seq} and status = 'active'`,
  );
  if (held !== undefined) await engine.store.write((tx) => tx.wake(jobsChannel));
}
