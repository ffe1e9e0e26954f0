// runs list and show: what was executed and how it ended.
import type { RunLog, RunRecord } from "../../index.ts";
import { paged } from "../cursor.ts";
import { id, maybe, page, text, word } from "../field.ts";
import { errorLine, errorLines, logTable } from "../job-view.ts";
import { fields, id as copied, json, section, status, table, time, type Part } from "../shown.ts";
import { owner, stretch } from "../scope.ts";
import { ownerOf, took } from "../tally.ts";
import { verb } from "../verb.ts";

const statuses = ["success", "error", "cancelled", "timed_out", "skipped", "lost"] as const;

export const look = {
  list: verb({
    words: "runs list",
    http: "GET /runs",
    role: "read",
    about: "list ended runs, newest first",
    input: {
      status: maybe(word("only runs that ended so", statuses)),
      name: maybe(text("only runs of the job or listener of this name", "name")),
      registration: maybe(text("only runs of the listener or schedule of this name", "name")),
      ...owner,
      session: maybe(text("only what this session ran", "id")),
      ...stretch,
      ...page,
    },
    examples: ["runs list --name send-receipt --status timed_out", "runs list --app kitchen --since 1h"],
    run: (book, input) => paged(book, "runs", input, (filter) => book.runs.list(filter)),
    show: ({ items }) =>
      table(items, runColumns, {
        none: "There are no such runs, or none before that cursor.",
        least: ["try", "took", "started"],
      }),
  }),

  show: verb({
    words: "runs show <id>",
    http: "GET /runs/{id}",
    role: "read",
    about: "show one run: its result or error, and its logs",
    input: { id: id("run") },
    examples: ["runs show 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e"],
    async run(book, { id: wanted }): Promise<RunRecord & { logs: readonly RunLog[] }> {
      return { ...(await book.runs.get(wanted)), logs: await book.runs.logs(wanted) };
    },
    show: ({ logs, ...run }) => runPage(run, logs),
  }),
};

const runColumns = {
  id: (run: RunRecord) => copied(run.id),
  name: (run: RunRecord) => run.name,
  status: (run: RunRecord) => status(run.status),
  try: (run: RunRecord) => run.attempt,
  started: (run: RunRecord) => time(run.startedAt),
  took: (run: RunRecord) => took(run.durationMs),
  error: (run: RunRecord) => errorLine(run.error),
};

function runPage(run: RunRecord, logs: readonly RunLog[]): Part[] {
  const { event, cause } = run;
  const facts = fields({
    run: copied(run.id),
    kind: run.kind,
    name: run.name,
    status: status(run.status),
    attempt: run.attempt,
    job: copied(run.jobId),
    heard: event === null ? null : `${event.topic}${event.id === null ? "" : ` (event ${event.id})`}`,
    app: ownerOf(run.app),
    registration: run.registration,
    session: copied(run.sessionId),
    started: time(run.startedAt),
    took: took(run.durationMs),
    "caused by": cause === null ? null : `run ${cause.runId}`,
    "root cause": cause?.rootRunId == null ? null : `run ${cause.rootRunId}`,
  });
  return [
    facts,
    ...(run.result === null ? [] : [section("result", json(run.result))]),
    ...(run.error === null ? [] : [section("error", errorLines(run.error))]),
    ...(logs.length === 0 ? [] : [section("logs", logTable(logs))]),
  ];
}
