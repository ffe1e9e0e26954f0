// Lines that a run wrote about itself: how they are written, and read over all runs.
import type { Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { cutPage, type Page } from "../core/page.ts";
import { quote, storableText } from "../core/quote.ts";
import type { TimeInput } from "../core/time.ts";
import { joinSql, sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { anyOf, byNumber, insertInto } from "../storage/word.ts";
import { momentMs } from "./report/scope.ts";

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
  await tx.run(insertInto("daybook_run_log", columns, lines));
}

export type LogFilter = {
  /** This level and above. */
  readonly level?: LogLevel;
  /** The name of the listener or schedule, or of the job. */
  readonly name?: string;
  readonly app?: string;
  readonly since?: TimeInput | Duration;
  readonly until?: TimeInput | Duration;
};

export type LogEntry = {
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: unknown;
  readonly runId: string;
  /** Null while the run has not ended. */
  readonly name: string | null;
};

type Row = Omit<LogEntry, "fields"> & { readonly seq: number; readonly fields: string | null };

/** The newest first. */
export async function readLogs(
  store: Store,
  tenant: string,
  filter: LogFilter,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<Page<LogEntry>> {
  const { level, name, app, since, until } = filter;
  const now = store.clock.now();
  if (level !== undefined) checkLevel(level, "level");
  const rows = await store.readHeavy<Row>(
    joinSql([
      sql`select run_log.seq, run_log.logged_at as at, run_log.level, run_log.message, run_log.fields,
          run_log.run_id as "runId", coalesce(run.registration, run.name) as name
        from daybook_run_log run_log ${byNumber} left join daybook_run run on run.tenant_id = run_log.tenant_id and run.id = run_log.run_id
        where run_log.tenant_id = ${tenant} and run_log.seq < ${before}`,
      ...(level === undefined
        ? []
        : [sql`and run_log.level ${anyOf("text", logLevels.slice(logLevels.indexOf(level)))}`]),
      ...(name === undefined ? [] : [sql`and coalesce(run.registration, run.name) = ${name}`]),
      ...(app === undefined ? [] : [sql`and run.app = ${app}`]),
      ...(since === undefined ? [] : [sql`and run_log.logged_at >= ${momentMs(now, since, "since")}`]),
      ...(until === undefined ? [] : [sql`and run_log.logged_at < ${momentMs(now, until, "until")}`]),
      sql`order by run_log.seq desc limit ${limit + 1}`,
    ]),
  );
  return cutPage(rows, limit, (row) => row.seq, toEntry);
}

function toEntry({ seq: _seq, fields, ...entry }: Row): LogEntry {
  return { ...entry, fields: fields === null ? null : (JSON.parse(fields) as unknown) };
}
