// The job that makes a call. Its params are the call's id and nothing else: what is sent stays sealed.
import { invalid } from "../core/error.ts";
import { defineJob, type AnyJob } from "../jobs/define.ts";
import { neverBlamed } from "../jobs/outcome.ts";
import { callJobName, callQueue } from "./call.ts";
import { sendCall } from "./attempt/send.ts";
import type { CallsRoom } from "./room.ts";

export function callJob(room: CallsRoom): AnyJob {
  // No code of the user runs in it, and what comes back is bounded: it is not what ends a process.
  const definition = defineJob(callJobName, { queue: callQueue, attempts: 1, losses: neverBlamed, run: notHere });
  return {
    ...definition,
    builtIn: {
      check: (params) => void idOf(params),
      run: (engine, params, context) => sendCall(room, engine, idOf(params), context),
    },
  };
}

function idOf(params: unknown): string {
  if (typeof params === "object" && params !== null && "id" in params && typeof params.id === "string")
    return params.id;
  throw invalid("a call is made with calls.submit, and not by enqueueing its job");
}

function notHere(): never {
  throw invalid("calls are sent by workers");
}
