// What the events room does when a delivery ends, hung on to the hooks of the work below.
import { limits } from "./core/limits.ts";
import { deliveryKind } from "./events/event.ts";
import { tell, tellAll, tellJobEnded, wantsJobFacts } from "./events/facts.ts";
import { anybodyHears } from "./events/listener-index.ts";
import { createOrderSweep, letNextGo, mustWait } from "./events/order.ts";
import { deliveryEnded, isQuiet } from "./events/settled.ts";
import type { JobHooks } from "./jobs/hooks.ts";
import type { RecordHooks } from "./records/room.ts";
import type { Tx } from "./storage/store.ts";
import type { SessionRow } from "./telemetry/session.ts";

export function eventHooks(others: JobHooks): JobHooks {
  return {
    ...others,
    onSettled: { ...others.onSettled, [deliveryKind]: deliveryEnded },
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

/** A change of a record is told in its own commit, to those who listen to the type. A document that would leave no room for
 *  anything else is not in the event: whoever wants it reads it as of the commit. */
export const recordHooks: RecordHooks = {
  hears: (tx, type) =>
    anybodyHears(
      tx,
      (["created", "updated", "deleted"] as const).map((kind) => `record.${type}.${kind}`),
    ),
  async onFact(tx, { type: topic, record: { tenant, value, ...change } }, cause) {
    const fits = Buffer.byteLength(JSON.stringify(value)) <= limits.jsonBytesMax / 2;
    const payload = fits ? { ...change, value } : change;
    await tell(tx, tenant, { topic, payload, cause });
  },
};
