// Checks what a publish will write, before any transaction begins.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { currentCause, type Cause } from "../core/cause.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { describeError, invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkKey } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { fitting } from "../core/standard-schema.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { futureMs, type TimeInput } from "../core/time.ts";
import { checkPriority } from "../jobs/define.ts";
import type { AnyEvent } from "./define.ts";
import { checkTopic } from "./topic.ts";

export type PublishOptions = {
  /** Your own id. If the book already has an event with this id, nothing is published. */
  readonly id?: string;
  /** −1000 … 1000, default 100: deliveries share the line with jobs, whose default is 0. */
  readonly priority?: number;
  /** Events of one key are heard in order, by listeners that ask for it. */
  readonly key?: string;
  /** Nothing is published while the book has an event with this key, or until `dedupeWindow` is over. */
  readonly dedupeKey?: string;
  /** How long a dedupe key counts; default as long as its event is kept. */
  readonly dedupeWindow?: Duration;
  /** Delivered at this time or later. */
  readonly at?: TimeInput;
  /** Delivered after this long or later. */
  readonly in?: Duration;
  /** Texts that travel beside the payload: a trace, a version, the author. */
  readonly headers?: Readonly<Record<string, string>>;
};

const known = ["id", "priority", "key", "dedupeKey", "dedupeWindow", "at", "in", "headers"] as const;

/** What a publish writes. What is left out has its default: see `newEvent`. */
export type PreparedEvent = {
  readonly topic: string;
  /** Canonical JSON. */
  readonly payload: string;
  readonly id?: string | null;
  readonly priority?: number;
  readonly key?: string | null;
  readonly dedupeKey?: string | null;
  readonly dedupeWindowMs?: number | null;
  readonly at?: number | null;
  readonly delayMs?: number;
  /** JSON: an object of texts. */
  readonly headers?: string | null;
  readonly cause?: Cause | undefined;
  /** The id of the event that this one repeats. */
  readonly replayOf?: string;
};

export async function prepareEvent(
  definition: AnyEvent,
  payload: unknown,
  options: PublishOptions = {},
): Promise<Required<Omit<PreparedEvent, "replayOf">>> {
  const { topic } = definition;
  checkTopic(topic);
  refuseUnknown(options, known, `publish of "${topic}"`);
  if (options.at !== undefined && options.in !== undefined) throw invalid('give "at" or "in", not both');
  if (options.dedupeWindow !== undefined && options.dedupeKey === undefined) {
    throw invalid('"dedupeWindow" says something about "dedupeKey", which is missing');
  }
  // The book keeps the payload as it was given. A schema may transform it, and listeners apply the schema once more.
  const given = payload ?? null;
  await validatePayload(definition, given);
  return {
    topic,
    id: options.id === undefined ? null : checkKey(options.id, "event id"),
    payload: toJson(given, { what: "payload" }),
    priority: checkPriority(options.priority ?? eventPriority),
    key: options.key === undefined ? null : checkKey(options.key, "key"),
    dedupeKey: options.dedupeKey === undefined ? null : checkKey(options.dedupeKey, "dedupeKey"),
    dedupeWindowMs:
      options.dedupeWindow === undefined ? null : durationMs(options.dedupeWindow, "dedupeWindow", { min: 1 }),
    at: options.at === undefined ? null : futureMs(options.at, "at"),
    delayMs: options.in === undefined ? 0 : durationMs(options.in, "in"),
    headers: options.headers === undefined ? null : headersJson(options.headers),
    cause: currentCause(),
  };
}

/** Higher than the default of jobs, which is 0: listeners hear an event before new work begins. */
export const eventPriority = 100;

/** The payload as the event's schema returns it. */
export async function validatePayload({ topic, schema }: AnyEvent, payload: unknown): Promise<unknown> {
  return schema === undefined ? payload : fittingPayload(topic, await schema["~standard"].validate(payload));
}

/** The payload that a schema returned; throws when the schema refused it. */
export function fittingPayload(topic: string, result: StandardSchemaV1.Result<unknown>): unknown {
  return fitting(result, `the payload of "${topic}" does not fit its schema`, { topic });
}

/** The error of a listener's run whose payload its schema refused. */
export function unfitPayload(cause: unknown): Error {
  const error = new Error(describeError(cause).message, { cause });
  error.name = "DependencyError";
  return error;
}

function headersJson(headers: Readonly<Record<string, string>>): string {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
    throw invalid(`headers are ${quote(headers)}: give an object of texts`);
  }
  const names = Object.keys(headers);
  if (names.length > limits.headersMax) throw invalid(`${names.length} headers: at most ${limits.headersMax}`);
  for (const name of names) {
    if (typeof headers[name] !== "string")
      throw invalid(`header ${quote(name)} is ${quote(headers[name])}: give a text`);
  }
  return toJson(headers, { what: "headers", bytesMax: limits.headersBytesMax });
}
