// runs: what was executed, how it ended, and how things went over a stretch of time.
import type { AppSummary, Bucket, Overview, RunLog, RunRecord } from "../../index.ts";
import { limits } from "../../core/limits.ts";
import { listed, paged } from "../list.ts";
import { id, maybe, text, whole, word } from "../field.ts";
import { noted } from "../shared-fields.ts";
import { asJson, copied, count, fields, lines, section, sentence, state, when, type Part } from "../shown.ts";
import { exampleId, operate, read } from "../verb.ts";
import { errorLine, errorLines, logTable } from "../work/job-view.ts";
import {
  checkSession,
  droppedOf,
  owner,
  ownerOf,
  scope,
  session,
  stretch,
  summaryTable,
  tallyTable,
  took,
} from "./tally.ts";

const statuses = ["success", "error", "cancelled", "timed_out", "skipped", "lost"] as const;

export const runs = {
  list: paged({
    words: "runs list",
    about: "list ended runs, newest first",
    input: {
      status: maybe(word("only runs that ended so", statuses)),
      name: maybe(text("only of the job, listener or schedule of this name", "name")),
      job: maybe(text("only of the job of this name, whatever fired it", "name")),
      ...owner,
      session: maybe(text("only what this session ran", "id")),
      ...stretch,
    },
    examples: ["runs list --name send-receipt --status timed_out", "runs list --app kitchen --since 1h"],
    find: (book, filter) => book.runs.list(filter),
    columns: {
      id: (run) => copied(run.id),
      name: (run) => copied(run.name),
      status: (run) => state(run.status),
      try: (run) => run.attempt,
      started: (run) => when(run.startedAt),
      took: (run) => took(run.durationMs),
      error: (run) => errorLine(run.error),
    },
    none: "There are no such runs, or none before that cursor.",
    least: ["try", "took", "started"],
  }),

  show: read({
    words: "runs show <id>",
    about: "show one run: its result or error, and its logs",
    input: { id: id("run") },
    async run(book, { id: wanted }): Promise<RunRecord & { logs: readonly RunLog[] }> {
      return { ...(await book.runs.get(wanted)), logs: await book.runs.logs(wanted) };
    },
    show: ({ logs, ...run }) => runPage(run, logs),
  }),

  summary: paged({
    words: "runs summary",
    http: "GET /run-summaries",
    about: "sum up each job, listener and schedule: runs, errors, durations, the last error",
    more: `Counts come from rollups: they are a few seconds behind, and stay when the runs have left. The last
error is the last in the same stretch of time, by default the last 24 hours. Percentiles are those of
buckets that double.`,
    input: { ...scope, session },
    examples: ["runs summary --kind schedule --since 7d", `runs summary --session ${exampleId}`],
    check: checkSession,
    find: (book, asked) => book.telemetry.summaries(asked),
    ...summaryTable,
    none: "Nothing ran in that time.",
  }),

  overview: read({
    words: "runs overview",
    http: "GET /run-overview",
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
        sentence(when(since), "to", when(until)),
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

  slow: listed({
    words: "runs slow",
    http: "GET /slow-runs",
    about: "list the runs that took longest in a stretch of time",
    input: { ...scope, session, limit: maybe(whole("how many to list (default: 20)", 1, limits.pageMax)) },
    examples: ["runs slow --app kitchen --since 7d --limit 5"],
    check: checkSession,
    find: (book, asked) => book.telemetry.slow(asked),
    columns: {
      took: (run) => took(run.durationMs),
      id: (run) => copied(run.id),
      kind: (run) => run.kind,
      name: (run) => copied(run.registration ?? run.name),
      app: (run) => ownerOf(run.app),
      status: (run) => state(run.status),
      started: (run) => when(run.startedAt),
    },
    none: "Nothing ran in that time, or what ran has left.",
    least: ["kind", "app", "started"],
  }),

  pin: operate({
    words: "runs pin <id>",
    http: "PUT /runs/{id}/pin",
    about: "keep a run from being removed",
    more: 'A pinned run stays, with its log lines and its job, whatever "daybook retain" is told.',
    input: { id: id("run"), ...noted },
    examples: [`runs pin ${exampleId} --note "the night it stayed dark"`],
    async run(book, { id: wanted, note }) {
      await book.runs.pin(wanted, note === undefined ? {} : { note });
      return { id: wanted, pinned: true };
    },
    show: ({ id: run }) => `run ${run} is pinned`,
  }),

  unpin: operate({
    words: "runs unpin <id>",
    http: "DELETE /runs/{id}/pin",
    about: "let a pinned run leave in its time",
    input: { id: id("run") },
    run: async (book, { id: wanted }) => ({
      id: wanted,
      pinned: false,
      wasPinned: await book.runs.unpin(wanted),
    }),
    show: ({ id: run, wasPinned }) => (wasPinned ? `run ${run} is no longer pinned` : `run ${run} was not pinned`),
  }),
};

function runPage(run: RunRecord, logs: readonly RunLog[]): Part[] {
  const { event, cause } = run;
  const facts = fields({
    run: copied(run.id),
    kind: run.kind,
    name: run.name,
    status: state(run.status),
    attempt: run.attempt,
    job: copied(run.jobId),
    heard: event === null ? null : `${event.topic}${event.id === null ? "" : ` (event ${event.id})`}`,
    app: ownerOf(run.app),
    registration: run.registration,
    session: copied(run.sessionId),
    started: when(run.startedAt),
    took: took(run.durationMs),
    "caused by": cause === null ? null : `run ${cause.runId}`,
    "root cause": cause?.rootRunId == null ? null : `run ${cause.rootRunId}`,
  });
  return [
    facts,
    ...(run.result === null ? [] : [section("result", asJson(run.result))]),
    ...(run.error === null ? [] : [section("error", errorLines(run.error))]),
    ...(logs.length === 0 ? [] : [section("logs", logTable(logs))]),
  ];
}

const bars = "▁▂▃▄▅▆▇█";

function sparkline(buckets: readonly Bucket[]): string {
  const most = buckets.reduce((max, { runs }) => Math.max(max, runs), 1);
  return buckets.map(({ runs }) => (runs === 0 ? " " : (bars[Math.ceil((7 * runs) / most)] ?? ""))).join("");
}
