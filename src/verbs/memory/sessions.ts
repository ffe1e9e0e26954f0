// sessions: which processes have the book open, which had, and what each of them ran.
import type { Overview, RunSummary, Session } from "../../index.ts";
import { limits } from "../../core/limits.ts";
import { paged } from "../list.ts";
import { id } from "../field.ts";
import { errorLine } from "../work/job-view.ts";
import { exampleId } from "../shared-fields.ts";
import { copied, sentence, state, table, when } from "../shown.ts";
import { droppedOf, summaryTable } from "./tally.ts";
import { read } from "../verb.ts";

const sessionColumns = {
  id: (each: Session) => copied(each.id),
  host: (each: Session) => each.host,
  pid: (each: Session) => each.pid,
  status: (each: Session) => state(each.status),
  started: (each: Session) => when(each.startedAt),
  "last beat": (each: Session) => when(each.lastHeartbeatAt),
  stopped: (each: Session) => when(each.stoppedAt),
  dropped: (each: Session) => droppedOf(each.dropped),
  error: ({ error }: Session) => (error === null ? null : errorLine({ ...error, trace: null })),
};

export const sessions = {
  list: paged({
    words: "sessions list",
    http: "GET /sessions",
    about: "list the processes that have the book open, and those that had, newest first",
    more: `The status is running, success (it closed the book), error (an exception ended it) or unknown (it
fell silent, and the time of its last beat is taken for its end). What it dropped are events that its
live listeners were too busy to hear, and runs and log lines of theirs that could not be recorded.`,
    input: {},
    examples: ["sessions list --limit 10"],
    find: (book, asked) => book.sessions.list(asked),
    columns: sessionColumns,
    none: "No process has ever opened this book, or none before that cursor.",
    least: ["last beat", "stopped", "host", "pid"],
  }),

  show: read({
    words: "sessions show <id>",
    http: "GET /sessions/{id}",
    about: "sum up what one session ran",
    input: { id: id("session") },
    examples: [`sessions show ${exampleId}`],
    async run(book, { id: session }): Promise<Overview & { id: string; items: readonly RunSummary[] }> {
      const all = await book.telemetry.overview({ session });
      const { items } = await book.telemetry.summaries({ session, limit: limits.pageMax });
      return { id: session, ...all, items };
    },
    show({ since, until, items, ...all }) {
      const whole: RunSummary = { ...all, kind: "all", name: "", app: null, lastError: null };
      return [sentence(when(since), "to", when(until)), table([whole, ...items], summaryTable.columns, summaryTable)];
    },
  }),
};
