// What the calls room does with its jobs, hung on to the hooks of the work below; and what it tells the room of events.
import { callsEnded } from "./calls/attempt/settled.ts";
import { callKind } from "./calls/call.ts";
import { mustWaitForHost, sweepHosts } from "./calls/circuit.ts";
import type { CallEars } from "./calls/facts.ts";
import type { CallsRoom } from "./calls/room.ts";
import { pruneCalls } from "./calls/steer.ts";
import { tell, wantsAny } from "./events/facts.ts";
import type { JobHooks } from "./jobs/hooks.ts";

export function callHooks(room: CallsRoom, others: JobHooks): JobHooks {
  return {
    ...others,
    onSettled: { ...others.onSettled, [callKind]: (tx, ended) => callsEnded(room, tx, ended) },
    mustWait: { ...others.mustWait, [callKind]: mustWaitForHost },
    onSweep: sweepHosts,
    onPruned: { ...others.onPruned, [callKind]: pruneCalls },
  };
}

/** What happens to a call is an event, if somebody listens to it. */
export const callEars: CallEars = {
  hears: wantsAny,
  onFact: (tx, { tenant, topic, payload }) => tell(tx, tenant, { topic, payload, key: payload.id }),
};
