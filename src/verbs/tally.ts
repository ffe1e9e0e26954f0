// How a person reads counts of runs.
import type { RunSummary, Session, Tally } from "../index.ts";
import { ago, count, id, status, table, words, type Cell, type Part } from "./shown.ts";

const tallyColumns = {
  runs: ({ runs }: Tally) => runs,
  errors: ({ errors }: Tally) => errors,
  health: ({ health, successRate }: Tally) =>
    health === null || successRate === null ? null : status(health, ` ${percent(successRate)}`),
  p50: ({ durationMs }: Tally) => took(durationMs?.p50),
  p95: ({ durationMs }: Tally) => took(durationMs?.p95),
  max: ({ durationMs }: Tally) => took(durationMs?.max),
};

/** Some counts, each with the name of what was counted. */
export function tallyTable(tallies: readonly (Tally & { readonly of: string })[]): Part {
  const columns = { of: ({ of }: (typeof tallies)[number]) => of, ...tallyColumns };
  return table(tallies, columns, { least: ["p50"] });
}

export function summaryTable(summaries: readonly RunSummary[], none: string): Part {
  const columns = {
    kind: ({ kind }: RunSummary) => kind,
    name: ({ name }: RunSummary) => name,
    app: ({ app }: RunSummary) => ownerOf(app),
    ...tallyColumns,
    "last error": ({ lastError }: RunSummary) =>
      lastError === null ? null : words(ago(lastError.at), `${lastError.type}: ${lastError.message}`),
  };
  return table(summaries, columns, { none, least: ["p50", "max", "app"] });
}

/** `kitchen[0]`: an app and its instance. */
export function ownerOf(app: RunSummary["app"]): string | null {
  return app === null ? null : `${app.key}[${app.instance}]`;
}

/** A duration to compare with others; undefined when nothing ran. */
export function took(ms: number | undefined): Cell {
  if (ms === undefined) return null;
  return id(ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
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
