// The job of a call. Its handler writes the attempt, sends it, and keeps the answer for the transaction that ends the run
// (settled.ts).
import { invalid } from "../../core/error.ts";
import { killPoint } from "../../core/fault.ts";
import { advise } from "../../core/advice.ts";
import type { RunContext } from "../../jobs/run/run.ts";
import { defineJob, type AnyJob } from "../../jobs/define.ts";
import type { Engine } from "../../jobs/engine.ts";
import { neverBlamed } from "../../jobs/settle/settle.ts";
import { callJobName, callQueue } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import { exchange, failureOf, reasonOf } from "../client/exchange.ts";
import { callRefused } from "../facts.ts";
import type { CallsRoom } from "../room.ts";
import type { ReadySend } from "./begin.ts";
import { answered, failed, type AttemptEnd, adviceAfter } from "./end.ts";

async function sendCall(room: CallsRoom, engine: Engine, context: RunContext): Promise<unknown> {
  const { clock } = engine;
  const { job } = context;
  const ready = await room.begins.begin(engine.store, job);
  killPoint("calls.begun");
  const end = await send(room, engine, context, ready);
  keep(room.heard, job.runId, end);
  if (end.errorKind === null) return { status: end.status };
  const { method, host } = ready.call;
  const problem = new Error(`${method} ${host}: ${end.errorMessage ?? end.errorKind}`);
  problem.name = "CallFailed";
  throw advise(problem, adviceAfter(end, clock.now()));
}

async function send(
  { settings, agents }: CallsRoom,
  { clock }: Engine,
  { job: { tenant }, signal }: RunContext,
  { call, outgoing, policy, scrub, mark }: ReadySend,
): Promise<AttemptEnd> {
  const phases: Phases = { dnsMs: null, connectMs: null, tlsMs: null };
  const began = clock.monotonic();
  const timing = (): { phases: Phases; totalMs: number } => ({ phases, totalMs: clock.monotonic() - began });
  try {
    const allow = settings.allowFor(tenant);
    const parts = { allow, ports: settings.ports, clock, signal, phases };
    const most = { redirects: policy.redirects, bytesMax: settings.responseBytesMax };
    const answer = await agents.use(allow, (dispatcher) => exchange(outgoing, { ...parts, ...most, dispatcher }));
    killPoint("calls.answered");
    return answered(answer, scrub, mark, timing());
  } catch (error) {
    const reason = reasonOf(error);
    if (reason !== undefined) callRefused.state({ tenant, id: call.id, host: call.host, reason });
    return failed(failureOf(error, signal, call.host), scrub, timing());
  }
}

// A run that this process lost never collects its answer, so the oldest answers are dropped.
const heardMax = 10_000;

function keep(heard: Map<string, AttemptEnd>, runId: string, end: AttemptEnd): void {
  if (heard.size >= heardMax) for (const oldest of heard.keys()) if (heard.delete(oldest)) break;
  heard.set(runId, end);
}

/** Its params are the call's id alone, for people to read: the request stays sealed. The engine finds the call by `kind_seq`. */
export function callJob(room: CallsRoom): AnyJob {
  // It runs no user code and its answers are bounded, so a lost process is never blamed on it.
  const definition = defineJob(callJobName, { queue: callQueue, attempts: 1, losses: neverBlamed, run: notByHand });
  return {
    ...definition,
    builtIn: { byHand: notByHand, run: (engine, _params, context) => sendCall(room, engine, context) },
  };
}

function notByHand(): never {
  throw invalid("a call is made with calls.submit, and changed with calls.reschedule: its job is not for hands");
}
