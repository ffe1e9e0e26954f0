// Sends one message to a webhook now, through the client of calls. Sinks use it: their deliveries are jobs already.
import type { Clock } from "../../core/clock.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { advise } from "../../core/retry.ts";
import { adviceAfter, answered } from "../attempt/end.ts";
import { callRefused } from "../facts.ts";
import { checkRequest, type RequestContent } from "../request/content.ts";
import { markWith, scrubber } from "../request/redact.ts";
import type { CallsRoom } from "../room.ts";
import { cloudEventsJson } from "../sink/message.ts";
import type { Phases } from "./connector.ts";
import { exchange, type Answer, type Outgoing, failureOf, reasonOf } from "./exchange.ts";
import { outgoingHeaders } from "./sign.ts";

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
