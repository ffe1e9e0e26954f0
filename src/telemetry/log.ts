// Lines that a run wrote about itself: how they are written, and read over all runs.
import type { Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import type { Page } from "../core/page.ts";
import { quote, storableText } from "../core/quote.ts";
import type { TimeInput } from "../core/time.ts";
import { shape, shapePage } from "../storage/shape.ts";
import { sql } from "../storage/sql.ts";
import type { Row, Store, Tx } from "../storage/store.ts";
import { andEqual, anyOf, byNumber, insertInto, type RowOf } from "../storage/word.ts";
import { momentMs, type ScopeOptions } from "./report/scope.ts";

const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

const columns = {
  tenant_id: "text",
  run_id: "text",
  logged_at: "integer",
  level: "text",
  message: "text",
  fields: "text",
} as const;

export type RunLogRow = Omit<RowOf<typeof columns>, "level" | "fields"> & { level: LogLevel; fields: string | null };

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

export async function writeLogs(tx: Pick<Tx, "run">, lines: readonly RunLogRow[]): Promise<void> {
  await tx.run(insertInto("daybook_run_log", columns, lines));
}

export type LogFilter = Pick<ScopeOptions, "name" | "app"> & {
  /** This level and above. */
  readonly level?: LogLevel;
  readonly since?: TimeInput | Duration;
  readonly until?: TimeInput | Duration;
};

export type RunLog = {
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: unknown;
};

export type LogEntry = RunLog & {
  readonly runId: string;
  /** Null while the run has not ended. */
  readonly name: string | null;
};

const shown = sql`run_log.logged_at as at, run_log.level, run_log.message, run_log.fields as "fields json"`;

/** The lines of one run, in their order. */
export async function readLogsOfRun(store: Store, tenant: string, runId: string): Promise<RunLog[]> {
  return shape(
    await store.readHeavy(sql`select ${shown} from daybook_run_log run_log
      where tenant_id = ${tenant} and run_id = ${runId} order by seq`),
  );
}

/** The lines of all runs, the newest first. */
export async function readLogs(
  store: Store,
  tenant: string,
  filter: LogFilter,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<Page<LogEntry>> {
  const { level, name, app } = filter;
  const now = store.clock.now();
  const since = filter.since === undefined ? 0 : momentMs(now, filter.since, "since");
  const until = filter.until === undefined ? Number.MAX_SAFE_INTEGER : momentMs(now, filter.until, "until");
  const levels = level === undefined ? logLevels : logLevels.slice(logLevels.indexOf(checkLevel(level, "level")));
  const found = await store.readPage<Row>(sql`select run_log.seq as ".seq", ${shown}, run_log.run_id as "runId",
      coalesce(run.registration, run.name) as name
    from daybook_run_log run_log ${byNumber} left join daybook_run run on run.tenant_id = run_log.tenant_id and run.id = run_log.run_id
    where run_log.tenant_id = ${tenant} and run_log.seq < ${before} and run_log.level ${anyOf("text", levels)}
      and run_log.logged_at >= ${since} and run_log.logged_at < ${until}
      ${andEqual({ "coalesce(run.registration, run.name)": name, "run.app": app })}
    order by run_log.seq desc limit ${limit + 1}`);
  return shapePage(found, limit);
}
