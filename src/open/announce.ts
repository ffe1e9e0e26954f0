// What the rooms say of themselves becomes events, if a listener wants them.
import { limits } from "../core/limits.ts";
import type { Tx } from "../storage/store.ts";
import type { SessionRow } from "../telemetry/session.ts";
import type { RecordHooks } from "../records/room.ts";
import type { Announce } from "../jobs/kind.ts";
import type { CallAnnounce } from "../calls/call.ts";
import { prepareEvent } from "../events/define.ts";
import { lookUp, type EventsRoom } from "../events/events.ts";
import { wantsAny, wantsJobFacts } from "../events/listener-index.ts";
import { say, tell, tellAll, tellJobEnded } from "../events/publish.ts";

/** Facts of jobs and schedules become events if a listener wants them; what schedules publish does in any case. */
export function announceTo(definitions: EventsRoom["definitions"]): Announce {
  return {
    wantsJobs: wantsJobFacts,
    jobEnded: tellJobEnded,
    tell,
    prepareEvent: async (event, payload, options) => {
      const prepared = await prepareEvent(lookUp({ definitions }, event), payload, options);
      return { topic: prepared.topic, payload: prepared.payload, priority: prepared.priority };
    },
    say,
  };
}

/** A session fell silent, and was ended by another. */
export async function tellSessionLost(tx: Tx, { id, host, pid, last_heartbeat_at: at }: SessionRow): Promise<void> {
  await tellAll(tx, { topic: "session.lost", payload: { id, host, pid, lastHeartbeatAt: at } });
}

/** A change of a record is told in its own commit, to the listeners of the type; the commits of a tenant come one after another, so
 *  its changes are heard in order by its type and key. A document that would leave no room for
 *  anything else is not in the event: a listener reads it as of the commit. */
export const recordHooks: RecordHooks = {
  hears: (tx, type) =>
    wantsAny(
      tx,
      (["created", "updated", "deleted"] as const).map((kind) => `record.${type}.${kind}`),
    ),
  async onFact(tx, { type: topic, record: { tenant, value, ...change } }, cause) {
    const fits = Buffer.byteLength(JSON.stringify(value)) <= limits.jsonBytesMax / 2;
    const payload = fits ? { ...change, value } : change;
    await tell(tx, tenant, { topic, payload, key: `${change.type}:${change.key}`, inOrder: true, cause });
  },
};

/** What happens to a call, and one thing after the other, is an event, if a listener wants it. */
export const announceCalls: CallAnnounce = {
  hears: wantsAny,
  onFact: (tx, { tenant, topic, payload }) => tell(tx, tenant, { topic, payload, key: payload.id, inOrder: true }),
};
