// What a question about runs may be narrowed to, and how a person reads counts of runs.
import type { RunSummary, Session, Tally } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { ago, copied, count, state, table, words, type Cell, type Part } from "../shown.ts";
import { maybe, moment, text, whole, word } from "../field.ts";

const tallyColumns = {
  runs: ({ runs }: Tally) => runs,
  errors: ({ errors }: Tally) => errors,
  health: ({ health, successRate }: Tally) =>
    health === null || successRate === null ? null : state(health, ` ${percent(successRate)}`),
  p50: ({ durationMs }: Tally) => took(durationMs?.p50),
  p95: ({ durationMs }: Tally) => took(durationMs?.p95),
  max: ({ durationMs }: Tally) => took(durationMs?.max),
};

/** Some counts, each with the name of what was counted. */
export function tallyTable(tallies: readonly (Tally & { readonly of: string })[]): Part {
  const columns = { of: ({ of }: (typeof tallies)[number]) => of, ...tallyColumns };
  return table(tallies, columns, { least: ["p50"] });
}

export const summaryTable = {
  columns: {
    kind: ({ kind }: RunSummary) => kind,
    name: ({ name }: RunSummary) => copied(name),
    app: ({ app }: RunSummary) => ownerOf(app),
    ...tallyColumns,
    "last error": ({ lastError }: RunSummary) =>
      lastError === null ? null : words(ago(lastError.at), `${lastError.type}: ${lastError.message}`),
  },
  least: ["p50", "max", "app"],
};

/** `kitchen[0]`: an app and its instance. */
export function ownerOf(app: RunSummary["app"]): string | null {
  return app === null ? null : `${app.key}[${app.instance}]`;
}

/** A duration to compare with others; undefined when nothing ran. */
export function took(ms: number | undefined): Cell {
  if (ms === undefined) return null;
  return copied(ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share === 1 ? 0 : 1)} %`;
}

/** What could not be recorded or heard; empty when nothing was lost. */
export function droppedOf(dropped: Session["dropped"]): string {
  const { runs, logs, events } = dropped ?? { runs: 0, logs: 0, events: 0 };
  return [
    ...(events === 0 ? [] : [count(events, "event")]),
    ...(runs === 0 ? [] : [count(runs, "run")]),
    ...(logs === 0 ? [] : [count(logs, "log line")]),
  ].join(", ");
}

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
