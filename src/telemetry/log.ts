// Lines that a run wrote about itself.
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { quote, storableText } from "../core/quote.ts";
import type { Tx } from "../storage/store.ts";
import { insertInto } from "../storage/word.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

export type RunLogRow = {
  tenant_id: string;
  run_id: string;
  logged_at: number;
  level: LogLevel;
  message: string;
  fields: string | null;
};

/** A line as it is stored. */
export function toLogLine(
  message: string,
  fields: Record<string, unknown> | undefined,
  level: LogLevel,
): Pick<RunLogRow, "level" | "message" | "fields"> {
  const most = { what: "log fields", bytesMax: limits.logLineBytesMax };
  return {
    level: checkLevel(level, "log level"),
    message: storableText(String(message), limits.logLineBytesMax),
    fields: fields === undefined ? null : toJson(fields, most),
  };
}

export function checkLevel(level: LogLevel, what: string): LogLevel {
  if (logLevels.includes(level)) return level;
  throw invalid(`${what} ${quote(level)} is not known: ${logLevels.join(", ")}`);
}

const columns = {
  tenant_id: "text",
  run_id: "text",
  logged_at: "integer",
  level: "text",
  message: "text",
  fields: "text",
} as const;

export async function writeLogs(tx: Tx, lines: readonly RunLogRow[]): Promise<void> {
  if (lines.length > 0) await tx.run(insertInto("daybook_run_log", columns, lines));
}
