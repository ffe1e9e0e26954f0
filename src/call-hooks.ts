// What the calls room does with its jobs, hung on to the hooks of the work below; and what it tells the room of events.
import { callEnded } from "./calls/attempt/settled.ts";
import { callKind } from "./calls/call.ts";
import { mustWaitForHost, sweepHosts } from "./calls/circuit.ts";
import type { CallFact } from "./calls/facts.ts";
import type { CallsRoom } from "./calls/room.ts";
import { tell } from "./events/facts.ts";
import type { JobHooks } from "./jobs/hooks.ts";
import type { Tx } from "./storage/store.ts";

export function callHooks(room: CallsRoom, others: JobHooks): JobHooks {
  return {
    ...others,
    onSettled: { ...others.onSettled, [callKind]: (tx, ...ended) => callEnded(room, tx, ...ended) },
    mustWait: { ...others.mustWait, [callKind]: mustWaitForHost },
    onSweep: sweepHosts,
  };
}

/** What happens to a call is an event, if somebody listens to it. */
export async function tellCall(tx: Tx, { tenant, topic, payload }: CallFact): Promise<void> {
  await tell(tx, tenant, { topic, payload, key: payload.id });
}
