// The handler of a call's job: has the attempt written down, sends it, and keeps what came back for the transaction that
// ends the run (settled.ts).
import { killPoint } from "../../core/fault.ts";
import { advise } from "../../jobs/advice.ts";
import type { RunContext } from "../../jobs/context.ts";
import type { Engine } from "../../jobs/engine.ts";
import type { Phases } from "../client/connector.ts";
import { exchange } from "../client/exchange.ts";
import { failureOf, reasonOf } from "../client/failure.ts";
import { callRefused } from "../facts.ts";
import type { CallsRoom } from "../room.ts";
import { answered, failed, type AttemptEnd } from "./end.ts";
import type { ReadySend } from "./ready.ts";
import { adviceAfter } from "./verdict.ts";

export async function sendCall(room: CallsRoom, engine: Engine, context: RunContext): Promise<unknown> {
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

// The end of a run that was taken from us is never asked for, so the oldest make room.
const heardMax = 10_000;

function keep(heard: Map<string, AttemptEnd>, runId: string, end: AttemptEnd): void {
  if (heard.size >= heardMax) for (const oldest of heard.keys()) if (heard.delete(oldest)) break;
  heard.set(runId, end);
}
