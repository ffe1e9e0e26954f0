// What a question about runs may be narrowed to: a stretch of time, and what ran in it.
import { invalid } from "../core/error.ts";
import { maybe, moment, text, whole, word } from "./field.ts";

export const stretch = {
  since: maybe(moment("from then on: an ISO time, or how long ago, such as 24h")),
  until: maybe(moment("until then: an ISO time, or how long ago")),
};

const kinds = ["job", "listener", "delivery", "catch_up", "schedule", "direct", "call"] as const;

export const owner = {
  kind: maybe(word("only of this kind; a listener is a live one", kinds)),
  app: maybe(text("only of this app", "key")),
  instance: maybe(whole("only of this instance of it", 0)),
};

export const scope = {
  ...stretch,
  ...owner,
  name: maybe(text("only of the job, listener or schedule of this name", "name")),
};

/** A session, instead of a stretch. */
export const session = maybe(text("only what this session ran, in all its time", "id"));

type Given = { readonly session?: string; readonly since?: string; readonly until?: string };

export function checkSession({ session: given, since, until }: Given): void {
  if (given === undefined || (since ?? until) === undefined) return;
  throw invalid("a session has its own beginning and end: leave out since and until, or the session");
}
