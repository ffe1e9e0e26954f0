// Sends one message to a webhook now, through the same client as calls: for sinks, whose deliveries are jobs already.
import type { Clock } from "../../core/clock.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { advise } from "../../jobs/advice.ts";
import { adviceAfter } from "../attempt/verdict.ts";
import { answered } from "../attempt/end.ts";
import { callRefused } from "../facts.ts";
import { checkRequest, type RequestContent } from "../request/content.ts";
import { markWith } from "../request/redact.ts";
import { scrubber } from "../request/secrets.ts";
import type { CallsRoom } from "../room.ts";
import { cloudEventsJson } from "../sink/message.ts";
import type { Phases } from "./connector.ts";
import { exchange, type Answer, type Outgoing } from "./exchange.ts";
import { failureOf, reasonOf } from "./failure.ts";
import { signatureHeaders } from "./sign.ts";

export type Webhook = {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs by Standard Webhooks; while secrets change, give both, the new one first. */
  readonly secret?: string | readonly string[];
};

/** The webhook, checked; the message takes the place of the body. */
export function checkWebhook(webhook: Webhook): RequestContent {
  refuseUnknown(webhook, ["url", "headers", "secret"], "webhook");
  const { url, headers, secret } = webhook;
  return checkRequest({
    ...{ method: "POST", url, body: "" },
    headers: { "content-type": cloudEventsJson, ...headers },
    ...(secret === undefined ? {} : { secret }),
  });
}

export type Delivery = {
  readonly tenant: string;
  /** The same for every attempt: by it the receiver knows a repeat. */
  readonly id: string;
  readonly body: string;
  readonly signal: AbortSignal;
};

/** Resolves once it was answered with 2xx; else throws, with advice for the next try. */
export async function deliver(
  { settings, agents }: CallsRoom,
  clock: Clock,
  webhook: RequestContent,
  { tenant, id, body, signal }: Delivery,
): Promise<void> {
  const allow = settings.allowFor(tenant);
  const bytes = Buffer.from(body);
  const url = new URL(webhook.url);
  const signed =
    webhook.secrets.length === 0
      ? {}
      : signatureHeaders({
          ...{ id, timestamp: Math.floor(clock.now() / 1000), body: bytes, secrets: webhook.secrets },
        });
  const headers = {
    ...{ accept: "*/*", "accept-encoding": "identity", "user-agent": "daybook", "idempotency-key": id },
    ...webhook.headers,
    ...signed,
  };
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
  // The error itself goes no further: it may say what a network looks like from the inside.
  if (answer === undefined) throw new Error(`POST ${url.host}: ${failure}`);
  const end = answered(answer, scrub, markWith(settings.keys, tenant), { phases, totalMs: 0 });
  if (end.errorKind === null) return;
  // Also after a refusal it is tried again: a receiver that is being changed refuses too, and attempts come to an end.
  const { atLeastMs = 0 } = adviceAfter(end, clock.now());
  throw advise(new Error(`POST ${url.host}: ${end.errorMessage ?? ""}`), { atLeastMs });
}
