// What the events room does when a delivery ends, hung on to the hooks of the work below.
import { deliveryKind } from "./events/event.ts";
import { createOrderSweep, letNextGo, mustWait } from "./events/order.ts";
import { deliveryEnded, isQuiet } from "./events/settled.ts";
import type { JobHooks } from "./jobs/hooks.ts";

export function eventHooks(others: JobHooks): JobHooks {
  return {
    ...others,
    onSettled: { ...others.onSettled, [deliveryKind]: deliveryEnded },
    quiet: { [deliveryKind]: isQuiet },
    mustWait: { [deliveryKind]: mustWait },
    afterFinish: { [deliveryKind]: async (tx, job) => void (await letNextGo(tx, job)) },
    onSweep: createOrderSweep(),
  };
}
