// sessions: which processes have the book open, which had, and what each of them ran.
import type { Overview, RunSummary } from "../../index.ts";
import { limits } from "../../core/limits.ts";
import { paged } from "../list.ts";
import { id } from "../field.ts";
import { errorLine } from "../work/job-view.ts";
import { copied, sentence, state, table, when } from "../shown.ts";
import { droppedOf, summaryTable } from "./tally.ts";
import { read } from "../verb.ts";

export const sessions = {
  list: paged({
    words: "sessions list",
    about: "list the processes that have the book open, and those that had, newest first",
    more: `The status is running, success (it closed the book), error (an exception ended it) or unknown (it
fell silent, and the time of its last beat is taken for its end). The kind is process, or remote: a
worker in another program (docs/remote-workers.md). What it dropped are events that its
live listeners were too busy to hear, and runs and log lines of theirs that could not be recorded.`,
    examples: ["sessions list --limit 10"],
    find: (book, asked) => book.sessions.list(asked),
    columns: {
      id: (each) => copied(each.id),
      kind: (each) => each.kind,
      host: (each) => each.host,
      pid: (each) => each.pid,
      status: (each) => state(each.status),
      started: (each) => when(each.startedAt),
      "last beat": (each) => when(each.lastHeartbeatAt),
      stopped: (each) => when(each.stoppedAt),
      dropped: (each) => droppedOf(each.dropped),
      error: ({ error }) => (error === null ? null : errorLine({ ...error, trace: null })),
    },
    none: "No process has ever opened this book, or none before that cursor.",
    least: ["last beat", "kind", "stopped", "host", "pid"],
  }),

  show: read({
    words: "sessions show <id>",
    about: "sum up what one session ran",
    input: { id: id("session") },
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
