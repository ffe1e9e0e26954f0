// A job in words: what the commands about jobs print of one, for machines and for people.
import { styleText } from "node:util";
import { isoTime } from "../core/time.ts";
import type { JobRecord, JobRun } from "../jobs/list.ts";
import { plainCell, showTable, showTime, timeCell } from "./show.ts";

/** Times of the book are milliseconds; at this edge they are ISO 8601. */
export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

export function jobJson(job: JobRecord): Record<string, unknown> {
  return {
    ...job,
    createdAt: isoTime(job.createdAt),
    availableAt: isoTime(job.availableAt),
    startedAt: isoOrNull(job.startedAt),
    finishedAt: isoOrNull(job.finishedAt),
    run:
      job.run === null
        ? null
        : { ...job.run, startedAt: isoTime(job.run.startedAt), endedAt: isoTime(job.run.endedAt) },
  };
}

export async function jobTable(jobs: readonly JobRecord[]): Promise<string> {
  return showTable(
    ["id", "name", "queue", "status", "try", "created", "note"],
    jobs.map((job) => [
      job.id,
      plainCell(job.name, 32),
      plainCell(job.queue, 20),
      showStatus(job.status),
      `${job.attempt}/${job.attempts}`,
      timeCell(job.createdAt),
      noteOf(job),
    ]),
  );
}

/** What one wants to know next about a job in this state. */
function noteOf(job: JobRecord): string {
  if (job.waitsFor === "time") return `starts ${showTime(job.availableAt).ago}`;
  if (job.waitsFor !== null) return `waits for its ${job.waitsFor}`;
  if (job.gone) return "its process is gone: recover it";
  if (job.status === "running")
    return job.progress === null ? `since ${showTime(job.startedAt).ago}` : progressOf(job.progress);
  const error = errorLine(job.run?.error ?? null, 40);
  return job.retriedBy === null ? error : `tried again; ${error}`;
}

export function progressOf({ done, note }: NonNullable<JobRecord["progress"]>): string {
  return `${Math.floor(done * 100)} %${note === null ? "" : `: ${plainCell(note)}`}`;
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
