// daybook sessions: which processes have the book open, and which had.
import { styleText } from "node:util";
import type { Command } from "commander";
import { isoTime } from "../core/time.ts";
import type { Session, SessionsPage } from "../telemetry/sessions.ts";
import type { Answer } from "./answer.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { plainCell, showTable, timeCell } from "./show.ts";
import { show } from "./sessions/show.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
The status is running, success (it closed the book), error (an exception ended it) or unknown (it
fell silent, and the time of its last beat is taken for its end). What it dropped are events that its
live listeners were too busy to hear, and runs and log lines of theirs that could not be recorded.

Example:
  $ daybook sessions --book shop.db --limit 10`;

export function sessions(program: Command): void {
  const command = program
    .command("sessions")
    .description("list the processes that have the book open, and those that had, newest first");
  addPageOptions(command)
    .addHelpText("after", example)
    .action((options: PageOptions) =>
      withBook(command, looking, async (book) => toAnswer(command, await book.sessions.list(options))),
    );
  show(command);
}

function toAnswer(command: Command, page: SessionsPage): Answer {
  return {
    json: { items: page.items.map(toJson), next: page.next },
    text: () => inWords(command, page),
  };
}

function toJson(session: Session): Record<string, unknown> {
  return {
    ...session,
    startedAt: isoTime(session.startedAt),
    lastHeartbeatAt: isoTime(session.lastHeartbeatAt),
    stoppedAt: session.stoppedAt === null ? null : isoTime(session.stoppedAt),
  };
}

async function inWords(command: Command, { items, next }: SessionsPage): Promise<string> {
  if (items.length === 0) return "No process has ever opened this book, or none before that cursor.";
  const head = ["id", "host", "pid", "status", "started", "last beat", "stopped", "dropped", "error"];
  const rows = items.map((each) => [
    each.id,
    plainCell(each.host ?? "", 24),
    String(each.pid ?? ""),
    showStatus(each.status),
    timeCell(each.startedAt),
    timeCell(each.lastHeartbeatAt),
    timeCell(each.stoppedAt),
    droppedCell(each.dropped),
    each.error === null ? "" : plainCell(`${each.error.type}: ${each.error.message}`),
  ]);
  return [await showTable(head, rows), ...nextPage(command, next)].join("\n");
}

function droppedCell(dropped: Session["dropped"]): string {
  const { runs, logs, events } = dropped ?? { runs: 0, logs: 0, events: 0 };
  const words = [`${events} events`, `${runs} runs`, `${logs} log lines`];
  return words.filter((_, index) => [events, runs, logs][index] !== 0).join(", ");
}

const colours = { running: "green", success: "dim", error: "red", unknown: "yellow" } as const;

function showStatus(status: Session["status"]): string {
  return styleText(colours[status], status, { stream: process.stdout });
}
