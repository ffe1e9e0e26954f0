// What a submit will write, checked and complete, before any transaction begins.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkKey, checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { futureMs, type TimeInput } from "../core/time.ts";
import { checkBackoff, type Backoff } from "../core/backoff.ts";
import { currentCause, type Cause } from "../core/cause.ts";
import type { CallPolicy } from "./call.ts";
import { checkRequest, requestKeys, type CallRequest, type RequestContent } from "./request/content.ts";

export type When = {
  /** Not before this time. */
  readonly at?: TimeInput;
  /** Not before this long from now. */
  readonly in?: Duration;
};

export type SubmitOptions = CallRequest &
  When & {
    /** What people call it; default its method and host. */
    readonly name?: string;
    readonly tags?: readonly string[];
    /** The same key and request again give the same call; another request is refused. */
    readonly idempotencyKey?: string;
    /** Default the run at the root of what caused it, else the call's own id. */
    readonly correlationId?: string;
    /** How often it may be sent in total; default 1, or what `retry` has steps for. A lost process is not counted. */
    readonly attempts?: number;
    /** When to try again after an answer that may be another one next time, or none: `"standard"` is 5 s, 5 m, 30 m, 2 h,
     *  5 h, 10 h and 10 h. */
    readonly retry?: "standard" | Backoff;
    /** How long one attempt may take in all; default 30 s. */
    readonly timeout?: Duration;
    /** How many redirects are followed; default none. */
    readonly redirects?: number;
  };

const known = [
  ...requestKeys,
  ...(["at", "in", "name", "tags", "idempotencyKey", "correlationId", "attempts", "retry", "timeout"] as const),
  "redirects",
] as const satisfies readonly (keyof SubmitOptions)[];

export type PreparedCall = {
  readonly content: RequestContent;
  readonly host: string;
  readonly name: string;
  readonly at: number | null;
  readonly delayMs: number;
  readonly tags: readonly string[];
  readonly idempotencyKey: string | null;
  readonly correlationId: string | null;
  readonly policy: CallPolicy;
  readonly cause: Cause | undefined;
};

export function prepareCall(options: SubmitOptions): PreparedCall {
  if (typeof options !== "object" || options === null) throw invalid("submit takes { method, url, … }");
  refuseUnknown(options, known, "submit");
  const content = checkRequest(options);
  const { host } = new URL(content.url);
  const { name, idempotencyKey, correlationId } = options;
  return {
    ...{ content, host, ...checkWhen(options), tags: checkTags(options.tags ?? []) },
    name: name === undefined ? shortName(`${content.method} ${host}`) : checkName(name, "name"),
    idempotencyKey: idempotencyKey === undefined ? null : checkKey(idempotencyKey, "idempotencyKey"),
    correlationId: correlationId === undefined ? null : checkKey(correlationId, "correlationId"),
    policy: checkPolicy(options),
    cause: currentCause(),
  };
}

function shortName(text: string): string {
  return text.length > limits.nameBytesMax ? text.slice(0, limits.nameBytesMax) : text;
}

export function checkWhen({ at, in: delay }: When): { at: number | null; delayMs: number } {
  if (at !== undefined && delay !== undefined) throw invalid('give "at" or "in", not both');
  const time = at === undefined ? null : futureMs(at, "at");
  if (time !== null && time > limits.callDueMsMax) throw invalid(`at is ${quote(at)}, after the year 9999`);
  return { at: time, delayMs: delay === undefined ? 0 : durationMs(delay, "in") };
}

function checkTags(tags: readonly string[]): readonly string[] {
  if (!Array.isArray(tags)) throw invalid('tags is a list of texts, such as ["billing", "eu"]');
  if (tags.length > limits.tagsMax) throw invalid(`${tags.length} tags: at most ${limits.tagsMax}`);
  for (const tag of tags as readonly string[]) {
    const bytes = Buffer.byteLength(checkName(tag, "tag"));
    if (bytes > limits.tagBytesMax) {
      throw invalid(`tag ${quote(tag)} is ${bytes} bytes long; at most ${limits.tagBytesMax}`);
    }
  }
  return [...new Set(tags as readonly string[])];
}

const standard: Backoff = ["5s", "5m", "30m", "2h", "5h", "10h", "10h"];

function checkPolicy({ attempts, retry, timeout, redirects }: SubmitOptions): CallPolicy {
  if (typeof retry === "string" && retry !== "standard") {
    throw invalid(`retry ${quote(retry)} is not known: "standard", a list of waits, or { base, factor, max, spread }`);
  }
  const backoff = retry === "standard" ? standard : retry;
  if (backoff !== undefined) checkBackoff(backoff);
  const steps = backoff === undefined ? 1 : Array.isArray(backoff) ? backoff.length + 1 : 4;
  return {
    attempts: checkCount(attempts ?? steps, "attempts", 1, 1000),
    backoff: backoff === undefined ? null : JSON.stringify(backoff),
    timeoutMs: durationMs(timeout ?? limits.callTimeoutMs, "timeout", { min: 1, max: limits.callTimeoutMsMax }),
    redirects: checkCount(redirects ?? 0, "redirects", 0, limits.callRedirectsMax),
  };
}
