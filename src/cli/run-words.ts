// A run in words: its error and what it wrote about itself.
import { isoTime } from "../core/time.ts";
import type { RunLog, RunRecord } from "../telemetry/run.ts";
import { plainCell, plainLines } from "./show.ts";

export function runJson(run: RunRecord): Record<string, unknown> {
  return { ...run, startedAt: isoTime(run.startedAt), endedAt: isoTime(run.endedAt) };
}

export function logJson(line: RunLog): Record<string, unknown> {
  return { ...line, at: isoTime(line.at) };
}

export function logLines(logs: readonly RunLog[]): string {
  return logs
    .map(({ at, level, message, fields }) => {
      const more = fields === null ? "" : ` ${plainCell(JSON.stringify(fields), 500)}`;
      return `${isoTime(at)} ${level.padEnd(5)} ${plainCell(message, 1000)}${more}`;
    })
    .join("\n");
}

/** The trace names the error again, so it stands for both when there is one. */
export function showError({ type, message, trace }: NonNullable<RunRecord["error"]>): string {
  const line = plainLines(`${type}: ${message}`);
  if (trace === null) return line;
  return trace.includes(message) ? plainLines(trace) : `${line}\n${plainLines(trace)}`;
}
