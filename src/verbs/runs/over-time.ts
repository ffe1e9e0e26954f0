// runs summary, overview and slow: how things went over a stretch of time.
import type { AppSummary, Bucket, Overview, RunRecord } from "../../index.ts";
import { limits } from "../../core/limits.ts";
import { paged } from "../cursor.ts";
import { maybe, page, whole } from "../field.ts";
import { count, id, lines, sentence, status, table, time } from "../shown.ts";
import { checkSession, scope, session } from "../scope.ts";
import { droppedOf, ownerOf, summaryTable, tallyTable, took } from "../tally.ts";
import { verb } from "../verb.ts";

export const overTime = {
  summary: verb({
    words: "runs summary",
    http: "GET /run-summaries",
    role: "read",
    about: "sum up each job, listener and schedule: runs, errors, durations, the last error",
    more: `Counts come from rollups: they are a few seconds behind, and stay when the runs have left. The last
error is the last in the same stretch of time, by default the last 24 hours. Percentiles are those of
buckets that double.`,
    input: { ...scope, session, ...page },
    examples: [
      "runs summary --kind schedule --since 7d",
      "runs summary --session 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e",
    ],
    check: checkSession,
    run: (book, input) => paged(book, "summaries", input, (asked) => book.telemetry.summaries(asked)),
    show: ({ items }) => summaryTable(items, "Nothing ran in that time."),
  }),

  overview: verb({
    words: "runs overview",
    http: "GET /run-overview",
    role: "read",
    about: "sum up all runs of a stretch of time, by kind, by app and over time",
    more: `Health is the share of runs that did not fail: excellent (all), good (95 % or more), warning (90 % or
more), critical.`,
    input: scope,
    examples: ["runs overview --since 7d"],
    async run(book, asked): Promise<Overview & { apps: readonly AppSummary[]; buckets: readonly Bucket[] }> {
      return {
        ...(await book.telemetry.overview(asked)),
        apps: await book.telemetry.apps(asked),
        buckets: await book.telemetry.buckets(asked),
      };
    },
    show({ since, until, byKind, apps, buckets, sessionsRunning, dropped, ...all }) {
      const lost = droppedOf(dropped);
      return [
        sentence(time(since), "to", time(until)),
        `${count(sessionsRunning, "session")} running`,
        tallyTable([
          { ...all, of: "all" },
          ...byKind.map((each) => ({ ...each, of: each.kind })),
          ...apps.map((each) => ({ ...each, of: `app ${each.app}` })),
        ]),
        ...(all.runs === 0 ? [] : [lines(sparkline(buckets))]),
        ...(lost === "" ? [] : [`dropped: ${lost}`]),
      ];
    },
  }),

  slow: verb({
    words: "runs slow",
    http: "GET /slow-runs",
    role: "read",
    about: "list the runs that took longest in a stretch of time",
    input: { ...scope, session, limit: maybe(whole("how many to list (default: 20)", 1, limits.pageMax)) },
    examples: ["runs slow --app kitchen --since 7d --limit 5"],
    check: checkSession,
    run: async (book, asked) => ({ items: await book.telemetry.slow(asked) }),
    show: ({ items }) =>
      table(items, slowColumns, {
        none: "Nothing ran in that time, or what ran has left.",
        least: ["kind", "app", "started"],
      }),
  }),
};

const slowColumns = {
  took: (run: RunRecord) => took(run.durationMs),
  id: (run: RunRecord) => id(run.id),
  kind: (run: RunRecord) => run.kind,
  name: (run: RunRecord) => run.registration ?? run.name,
  app: (run: RunRecord) => ownerOf(run.app),
  status: (run: RunRecord) => status(run.status),
  started: (run: RunRecord) => time(run.startedAt),
};

const bars = "▁▂▃▄▅▆▇█";

function sparkline(buckets: readonly Bucket[]): string {
  const most = buckets.reduce((max, { runs }) => Math.max(max, runs), 1);
  return buckets.map(({ runs }) => (runs === 0 ? " " : (bars[Math.ceil((7 * runs) / most)] ?? ""))).join("");
}
