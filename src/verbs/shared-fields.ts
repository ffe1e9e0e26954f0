// Fields that several verbs take, each said once, with the checks of those that belong together.
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { checkNotice, type Notice } from "../jobs/notice.ts";
import { parseJson } from "../core/parse-json.ts";
import { checkPattern, checkTopic } from "../events/topic.ts";
import { checked, duration, field, flag, json, list, maybe, text, time, whole, type Field } from "./field.ts";

/** What every list takes. */
export const page = {
  limit: maybe(whole(`how many to list (default: ${limits.pageDefault})`, 1, limits.pageMax)),
  after: maybe(text('go on after a page: its "next"', "cursor", 4096)),
};

/** What a verb that destroys takes: without it, the verb only says what it would do. */
export const applying = { apply: maybe(flag("do it, and do not only say it")) };

export const rehearsing = { dryRun: maybe(flag("only say what would be done")) };

/** Why something is paused or pinned. */
export const noted = { note: maybe(text("why, for those who look at it later", "text", limits.noteBytesMax)) };

export function tags(of: string): Field<readonly string[], true> {
  return maybe(list(text(`a tag of ${of}; may be given several times`, "tag"), { one: "tag", max: limits.tagsMax }));
}

export function priority(about: string): Field<number, false> {
  return whole(`from -1000 to 1000, ${about}`, -limits.priorityMax, limits.priorityMax);
}

/** A time or a delay; `checkDue` refuses both. */
/** Whom to tell of which ends. On a command line `@file` keeps its secret out of the list of processes. */
export function notice<End extends string>(ends: readonly End[], what: string): Field<Notice<End>, false> {
  return field({
    kind: "json",
    about: 'tell a webhook how it ended: {"on": ["failed"], "webhook": {"url": …, "secret": …}}, or @file',
    metavar: "json",
    schema: {
      type: "object",
      properties: { on: { type: "array", items: { enum: ends } }, webhook: { type: "object" } },
      required: ["on", "webhook"],
    },
    check: (value) => void checkNotice(value as Notice<End>, ends, what),
    fromText: (given, name) => parseJson(given, { what: name }),
  });
}

export const due = {
  at: maybe(time("not before this time, ISO 8601 with a zone")),
  in: maybe(duration("not before this long from now: 30s, 5m, 1h30m, 7d")),
};

export function checkDue(input: { readonly at?: string; readonly in?: string }): void {
  if (input.at !== undefined && input.in !== undefined) throw invalid('give "at" or "in", not both');
}

/** What a job is made with; its definition decides what is not given. */
export const making = {
  params: maybe(json("the params as JSON")),
  queue: maybe(text("the queue (default: that of its definition)", "queue")),
  priority: maybe(priority("higher runs first (default: that of its definition)")),
  attempts: maybe(whole("how often it may be tried in total (default: as its definition says)", 1, 1000)),
  timeout: maybe(duration("how long one run may take", { min: 1 })),
};

/** One topic, such as `order.paid`; wildcards are refused. */
export function topic(about: string): Field<string, false> {
  return checked(text(about, "topic", limits.topicBytesMax), checkTopic);
}

/** A topic, or a pattern with `*` and `>`. */
export function pattern(about: string): Field<string, false> {
  return checked(text(about, "pattern", limits.topicBytesMax), checkPattern);
}

type Headers = { readonly [name: string]: string };

/** An object of names and texts, or lines of "name: value". A value is never shown, since it may be a token. */
export function headers(about: string, max: number): Field<Headers, false> {
  return field({
    kind: "headers",
    about,
    metavar: "line",
    schema: { type: "object", additionalProperties: { type: "string" }, maxProperties: max, "x-one": "header" },
    check(value, what) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw invalid(`${what} is no object of names and texts: give { "accept": "text/plain" }`);
      }
      // What is no plain object would count as no headers at all: a Map, Headers, a promise.
      toJson(value, { what, bytesMax: limits.callHeadersMax * limits.callHeaderBytesMax });
      const entries = Object.entries(value);
      if (entries.length > max) throw invalid(`${what} has ${entries.length} names: give at most ${max}`);
      for (const [name, value] of entries) {
        if (typeof value !== "string") throw invalid(`the header ${quote(name)} of ${what} is no text`);
      }
    },
    fromText: (line, what) => readHeaders([line], what),
    fromTexts: readHeaders,
  });
}

function readHeaders(lines: readonly string[], what: string): Headers {
  const found = new Map<string, string>();
  for (const line of lines) {
    const at = line.indexOf(":");
    if (at < 1) throw invalid(`${what} ${quote(line.slice(0, 10))}… is not "name: value"`);
    const name = line.slice(0, at).trim();
    if (found.has(name)) throw invalid(`${what} has ${quote(name)} twice: give it once`);
    found.set(name, line.slice(at + 1).trim());
  }
  return Object.fromEntries(found);
}
