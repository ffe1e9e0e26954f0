// sessions: which processes have the book open, which had, and what each of them ran.
import type { Overview, RunSummary, Session } from "../index.ts";
import { limits } from "../core/limits.ts";
import { paged } from "./cursor.ts";
import { id, page } from "./field.ts";
import { errorLine } from "./job-view.ts";
import { id as copied, sentence, status, table, time } from "./shown.ts";
import { droppedOf, summaryTable } from "./tally.ts";
import { verb } from "./verb.ts";

export const sessions = {
  list: verb({
    words: "sessions list",
    http: "GET /sessions",
    role: "read",
    about: "list the processes that have the book open, and those that had, newest first",
    more: `The status is running, success (it closed the book), error (an exception ended it) or unknown (it
fell silent, and the time of its last beat is taken for its end). What it dropped are events that its
live listeners were too busy to hear, and runs and log lines of theirs that could not be recorded.`,
    input: page,
    examples: ["sessions list --limit 10"],
    run: (book, input) => paged(book, "sessions", input, (asked) => book.sessions.list(asked)),
    show: ({ items }) =>
      table(items, sessionColumns, {
        none: "No process has ever opened this book, or none before that cursor.",
        least: ["last beat", "stopped", "host", "pid"],
      }),
  }),

  show: verb({
    words: "sessions show <id>",
    http: "GET /sessions/{id}",
    role: "read",
    about: "sum up what one session ran",
    input: { id: id("session") },
    examples: ["sessions show 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e"],
    async run(book, { id: session }): Promise<Overview & { id: string; items: readonly RunSummary[] }> {
      const all = await book.telemetry.overview({ session });
      const { items } = await book.telemetry.summaries({ session, limit: limits.pageMax });
      return { id: session, ...all, items };
    },
    show({ since, until, items, ...all }) {
      const whole: RunSummary = { ...all, kind: "all", name: "", app: null, lastError: null };
      return [sentence(time(since), "to", time(until)), summaryTable([whole, ...items], "It ran nothing.")];
    },
  }),
};

const sessionColumns = {
  id: (each: Session) => copied(each.id),
  host: (each: Session) => each.host,
  pid: (each: Session) => each.pid,
  status: (each: Session) => status(each.status),
  started: (each: Session) => time(each.startedAt),
  "last beat": (each: Session) => time(each.lastHeartbeatAt),
  stopped: (each: Session) => time(each.stoppedAt),
  dropped: (each: Session) => droppedOf(each.dropped),
  error: ({ error }: Session) => (error === null ? null : errorLine({ ...error, trace: null })),
};
