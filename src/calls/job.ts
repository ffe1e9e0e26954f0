// The job that makes a call. Its params are the call's id and nothing else: what is sent stays sealed. They are for people;
// which call it makes is said by its kind's number.
import { invalid } from "../core/error.ts";
import { defineJob, type AnyJob } from "../jobs/define.ts";
import { neverBlamed } from "../jobs/outcome.ts";
import { callJobName, callQueue } from "./call.ts";
import { sendCall } from "./attempt/send.ts";
import type { CallsRoom } from "./room.ts";

export function callJob(room: CallsRoom): AnyJob {
  // No code of the user runs in it, and what comes back is bounded: it is not what ends a process.
  const definition = defineJob(callJobName, { queue: callQueue, attempts: 1, losses: neverBlamed, run: notByHand });
  return {
    ...definition,
    builtIn: { byHand: notByHand, run: (engine, _params, context) => sendCall(room, engine, context) },
  };
}

function notByHand(): never {
  throw invalid("a call is made with calls.submit, and changed with calls.reschedule: its job is not for hands");
}
