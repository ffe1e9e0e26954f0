// A job in words: what the commands about jobs print of one, for machines and for people.
import { styleText } from "node:util";
import type { JobRun } from "../jobs/explain/list.ts";
import { plainLine } from "../verbs/plain.ts";
import { cutTo } from "../verbs/width.ts";

/** Text from the book, on one line that is not longer than this. */
export function plainCell(text: string, lengthMax = 60): string {
  return cutTo(plainLine(text), lengthMax);
}

export function errorLine(error: JobRun["error"], lengthMax?: number): string {
  return error === null ? "" : plainCell(`${error.type}: ${error.message}`, lengthMax);
}

const colours = {
  ...({ waiting: "yellow", queued: "cyan", running: "green", completed: "dim", success: "dim" } as const),
  ...({ failed: "red", error: "red", timed_out: "red", lost: "red", cancelled: "yellow", skipped: "yellow" } as const),
};

/** The status of a job, or of a run. */
export function showStatus(status: keyof typeof colours): string {
  return styleText(colours[status], status, { stream: process.stdout });
}
