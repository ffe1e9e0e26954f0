// The job of a call. Its handler writes the attempt, sends it, and keeps the answer for the transaction that ends the run
// (settled.ts).
import type { Clock } from "../../core/clock.ts";
import { invalid } from "../../core/error.ts";
import { killPoint } from "../../core/fact.ts";
import { advise } from "../../core/retry.ts";
import { defineJob, type AnyJob } from "../../jobs/define.ts";
import type { Engine } from "../../jobs/engine.ts";
import type { RunContext } from "../../jobs/run/run.ts";
import { neverBlamed } from "../../jobs/settle/settle.ts";
import { callJobName, callQueue, callRefused } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import { exchange, failureOf, reasonOf, type Answer } from "../client/exchange.ts";
import { outgoingOf, type RequestContent } from "../request/content.ts";
import { keepAnswer } from "../request/kept.ts";
import type { CallsRoom } from "../room.ts";
import type { ReadySend } from "./begin.ts";
import { adviceAfter, answered, failed, saidIn, type AttemptEnd, type Timing } from "./end.ts";

async function sendCall(room: CallsRoom, { store, clock }: Engine, { job, signal }: RunContext): Promise<unknown> {
  const { call, policy, outgoing } = await room.begins.begin(store, job);
  killPoint("calls.begun");
  const { tenant, runId } = job;
  const { id, kept } = call;
  const { answer, end } = await send(room, clock, {
    outgoing,
    attempts: policy.attempts,
    tenant,
    id,
    redirects: policy.redirects,
    signal,
  });
  const { keys } = room.settings;
  const said = answer === undefined ? {} : keepAnswer(saidIn(answer), { keys, tenant, id, runId, kept });
  keep(room.heard, runId, { ...end, ...said });
  if (end.error_kind === null) return { status: end.response_status };
  const problem = new Error(`${call.method} ${call.host}: ${end.error_message ?? end.error_kind}`);
  problem.name = "CallFailed";
  throw advise(problem, adviceAfter(end, answer?.headers["retry-after"], clock.now()));
}

type Sending = Pick<ReadySend, "outgoing"> & {
  /** How often it may be sent in all, where that is said. */
  readonly attempts: number | undefined;
  readonly tenant: string;
  readonly id: string;
  readonly redirects: number;
  readonly signal: AbortSignal;
};

type Sent = { readonly answer?: Answer; readonly end: AttemptEnd };

async function send({ settings, agents }: CallsRoom, clock: Clock, sending: Sending): Promise<Sent> {
  const { outgoing, attempts, tenant, id, redirects, signal } = sending;
  const { host } = outgoing.url;
  const phases: Phases = {};
  const began = clock.monotonic();
  const timing = (): Timing => ({ ...phases, total_ms: clock.monotonic() - began });
  try {
    const allow = settings.allowFor(tenant);
    const most = { redirects, bytesMax: settings.responseBytesMax };
    const parts = { ...most, allow, ports: settings.ports, clock, signal, phases };
    // What may be sent once, and is not harmless when it is sent again, is not sent on a connection that may be closing.
    const alone = attempts === 1 && (outgoing.method === "POST" || outgoing.method === "PATCH");
    const answer = await agents.use({ tenant, origin: outgoing.url.origin, allow, alone }, (dispatcher) =>
      exchange(outgoing, { ...parts, dispatcher }),
    );
    killPoint("calls.answered");
    return { answer, end: answered(answer, timing()) };
  } catch (error) {
    const reason = reasonOf(error);
    if (reason !== undefined) callRefused.state({ tenant, id, host, reason });
    return { end: failed(failureOf(error, signal, host), timing()) };
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

type Delivery = {
  readonly tenant: string;
  /** The same for every attempt: the receiver recognises a repeat by it. */
  readonly id: string;
  readonly body: string;
  readonly attempts: number | undefined;
  readonly signal: AbortSignal;
};

/** Sends one message to a webhook now; sinks use it, because their deliveries are jobs already. Resolves when the answer is 2xx;
 *  otherwise throws, with advice for the next try. */
export async function deliver(
  room: CallsRoom,
  clock: Clock,
  webhook: RequestContent,
  { tenant, id, body, attempts, signal }: Delivery,
): Promise<void> {
  const outgoing = outgoingOf({ ...webhook, body }, { id, now: clock.now() });
  const { answer, end } = await send(room, clock, { outgoing, attempts, tenant, id, redirects: 0, signal });
  if (end.error_kind === null) return;
  // A refusal is retried too: a receiver may refuse while it is being changed, and attempts are limited.
  const { atLeastMs = 0 } = adviceAfter(end, answer?.headers["retry-after"], clock.now());
  throw advise(new Error(`POST ${outgoing.url.host}: ${end.error_message ?? ""}`), { atLeastMs });
}
