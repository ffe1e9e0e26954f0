// What the events room does when a delivery ends, hung on to the hooks of the work below.
import { catchUpEnded } from "./events/catch-up.ts";
import { catchUpKind, deliveryKind } from "./events/event.ts";
import { tell, tellAll, tellJobEnded, wantsJobFacts } from "./events/facts.ts";
import { createOrderSweep, letNextGo, mustWait } from "./events/order.ts";
import { deliveryEnded, isQuiet } from "./events/settled.ts";
import type { JobHooks } from "./jobs/hooks.ts";
import type { Tx } from "./storage/store.ts";
import type { SessionRow } from "./telemetry/session.ts";

export function eventHooks(others: JobHooks): JobHooks {
  return {
    ...others,
    onSettled: { ...others.onSettled, [deliveryKind]: deliveryEnded, [catchUpKind]: catchUpEnded },
    quiet: { [deliveryKind]: isQuiet },
    mustWait: { [deliveryKind]: mustWait },
    afterFinish: { [deliveryKind]: async (tx, job) => void (await letNextGo(tx, job)) },
    onSweep: createOrderSweep(),
    onFact: (tx, { type, job }, row) => tellJobEnded(tx, type, job, row),
    wantsFacts: wantsJobFacts,
    tell,
  };
}

/** A session fell silent, and was ended by another. */
export async function tellSessionLost(tx: Tx, { id, host, pid, last_heartbeat_at: at }: SessionRow): Promise<void> {
  await tellAll(tx, { topic: "session.lost", payload: { id, host, pid, lastHeartbeatAt: at } });
}
