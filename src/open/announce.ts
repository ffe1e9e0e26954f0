// What the rooms say of themselves becomes events, if somebody listens.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { say, tell, tellAll, tellJobEnded, wantsAny, wantsJobFacts } from "../events/facts.ts";
import { isEvent, type AnyEvent } from "../events/define.ts";
import { lookUp, type EventsRoom } from "../events/events.ts";
import { prepareEvent } from "../events/prepare.ts";
import type { CallAnnounce } from "../calls/call.ts";
import type { Announce } from "../jobs/kind.ts";
import type { RecordHooks } from "../records/room.ts";
import type { Tx } from "../storage/store.ts";
import type { SessionRow } from "../telemetry/session.ts";

/** Facts of jobs and schedules become events if somebody listens; what schedules publish does in any case. */
export function announceTo(definitions: EventsRoom["definitions"]): Announce {
  return {
    wantsJobs: wantsJobFacts,
    jobEnded: tellJobEnded,
    tell,
    prepareEvent: async (event, payload, options) => {
      const prepared = await prepareEvent(lookUp({ definitions }, asEvent(event)), payload, options);
      return { topic: prepared.topic, payload: prepared.payload, priority: prepared.priority };
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

/** What happens to a call is an event, if somebody listens to it. */
export const announceCalls: CallAnnounce = {
  hears: wantsAny,
  onFact: (tx, { tenant, topic, payload }) => tell(tx, tenant, { topic, payload, key: payload.id }),
};
