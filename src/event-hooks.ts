// What the events room does when a delivery ends, hung on to the hooks of the work below.
import { invalid } from "./core/error.ts";
import { limits } from "./core/limits.ts";
import { quote } from "./core/quote.ts";
import { catchUpEnded } from "./events/catch-up.ts";
import { catchUpKind, deliveryKind } from "./events/event.ts";
import { say, tell, tellAll, tellJobEnded, wantsAny, wantsJobFacts } from "./events/facts.ts";
import { isEvent, type AnyEvent } from "./events/define.ts";
import { lookUp, type EventsRoom } from "./events/events.ts";
import { prepareEvent } from "./events/prepare.ts";
import { createOrderSweep, letNextGo, mustWait } from "./events/order.ts";
import { deliveryEnded, isQuiet } from "./events/settled.ts";
import type { JobHooks } from "./jobs/hooks.ts";
import type { RecordHooks } from "./records/room.ts";
import type { Tx } from "./storage/store.ts";
import type { SessionRow } from "./telemetry/session.ts";

export function eventHooks(others: JobHooks, definitions: EventsRoom["definitions"]): JobHooks {
  const sweepOrders = createOrderSweep();
  return {
    ...others,
    onSettled: { ...others.onSettled, [deliveryKind]: deliveryEnded, [catchUpKind]: catchUpEnded },
    quiet: { [deliveryKind]: isQuiet },
    mustWait: { ...others.mustWait, [deliveryKind]: mustWait },
    afterFinish: { [deliveryKind]: async (tx, job) => void (await letNextGo(tx, job)) },
    onSweep: async (tx) => ((await others.onSweep?.(tx)) ?? 0) + (await sweepOrders(tx)),
    onFact: (tx, { type, job }, row) => tellJobEnded(tx, type, job, row),
    wantsFacts: wantsJobFacts,
    tell,
    prepareEvent: async (event, payload, options) => {
      const {
        topic,
        payload: text,
        priority,
      } = await prepareEvent(lookUp({ definitions }, asEvent(event)), payload, options);
      return { topic, payload: text, priority };
    },
    say,
  };
}

function asEvent(given: unknown): AnyEvent | string {
  if (typeof given === "string" || isEvent(given)) return given;
  throw invalid(`event is ${quote(given)}: give an event, or a topic such as "order.paid"`);
}

/** A session fell silent, and was ended by another. */
export async function tellSessionLost(tx: Tx, { id, host, pid, last_heartbeat_at: at }: SessionRow): Promise<void> {
  await tellAll(tx, { topic: "session.lost", payload: { id, host, pid, lastHeartbeatAt: at } });
}

/** A change of a record is told in its own commit, to those who listen to the type. A document that would leave no room for
 *  anything else is not in the event: whoever wants it reads it as of the commit. */
export const recordHooks: RecordHooks = {
  hears: (tx, type) =>
    wantsAny(
      tx,
      (["created", "updated", "deleted"] as const).map((kind) => `record.${type}.${kind}`),
    ),
  async onFact(tx, { type: topic, record: { tenant, value, ...change } }, cause) {
    const fits = Buffer.byteLength(JSON.stringify(value)) <= limits.jsonBytesMax / 2;
    const payload = fits ? { ...change, value } : change;
    await tell(tx, tenant, { topic, payload, cause });
  },
};
