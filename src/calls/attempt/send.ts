// The job of a call. Its handler writes the attempt, sends it, and keeps the answer for the transaction that ends the run
// (settled.ts).
import type { Clock } from "../../core/clock.ts";
import { invalid } from "../../core/error.ts";
import { killPoint } from "../../core/fact.ts";
import { advise } from "../../core/retry.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { defineJob, type AnyJob } from "../../jobs/define.ts";
import type { Engine } from "../../jobs/engine.ts";
import type { RunContext } from "../../jobs/run/run.ts";
import { neverBlamed } from "../../jobs/settle/settle.ts";
import { callJobName, callQueue, callRefused } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import { exchange, failureOf, reasonOf, type Answer, type Outgoing } from "../client/exchange.ts";
import { checkRequest, outgoingHeaders, type RequestContent } from "../request/content.ts";
import { markWith, scrubber } from "../request/redact.ts";
import type { CallsRoom } from "../room.ts";
import { cloudEventsJson } from "../sink/broker.ts";
import type { ReadySend } from "./begin.ts";
import { adviceAfter, answered, failed, type AttemptEnd } from "./end.ts";

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

export type Webhook = {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs by Standard Webhooks. While a secret is being changed, give both, the new one first. */
  readonly secret?: string | readonly string[];
};

/** Checks a webhook. The message becomes its body. */
export function checkWebhook(webhook: Webhook): RequestContent {
  refuseUnknown(webhook, ["url", "headers", "secret"], "webhook");
  const { url, headers, secret } = webhook;
  return checkRequest({
    method: "POST",
    url,
    body: "",
    headers: { "content-type": cloudEventsJson, ...headers },
    ...(secret === undefined ? {} : { secret }),
  });
}

export type Delivery = {
  readonly tenant: string;
  /** The same for every attempt: the receiver recognises a repeat by it. */
  readonly id: string;
  readonly body: string;
  readonly signal: AbortSignal;
};

/** Resolves when the answer is 2xx; otherwise throws, with advice for the next try. */
export async function deliver(
  { settings, agents }: CallsRoom,
  clock: Clock,
  webhook: RequestContent,
  { tenant, id, body, signal }: Delivery,
): Promise<void> {
  const allow = settings.allowFor(tenant);
  const bytes = Buffer.from(body);
  const url = new URL(webhook.url);
  const headers = outgoingHeaders(webhook, { id, now: clock.now(), body: bytes });
  const phases: Phases = { dnsMs: null, connectMs: null, tlsMs: null };
  const parts = { allow, ports: settings.ports, clock, signal, phases, redirects: 0 };
  const scrub = scrubber(webhook);
  let answer: Answer | undefined;
  let failure = "";
  try {
    const outgoing: Outgoing = { method: "POST", url, headers, body: bytes };
    const bytesMax = settings.responseBytesMax;
    answer = await agents.use(allow, (dispatcher) => exchange(outgoing, { ...parts, dispatcher, bytesMax }));
  } catch (error) {
    const reason = reasonOf(error);
    if (reason !== undefined) callRefused.state({ tenant, id, host: url.host, reason });
    failure = scrub(failureOf(error, signal, url.host).message);
  }
  // The error itself is not passed on: it may reveal the inside of a network.
  if (answer === undefined) throw new Error(`POST ${url.host}: ${failure}`);
  const end = answered(answer, scrub, markWith(settings.keys, tenant), { phases, totalMs: 0 });
  if (end.errorKind === null) return;
  // A refusal is retried too: a receiver may refuse while it is being changed, and attempts are limited.
  const { atLeastMs = 0 } = adviceAfter(end, clock.now());
  throw advise(new Error(`POST ${url.host}: ${end.errorMessage ?? ""}`), { atLeastMs });
}
