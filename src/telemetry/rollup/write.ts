// Adds counts and failures to the rollups. The caller holds the mark, so nobody else writes these tables.
import { createHash } from "node:crypto";
import { rawSql, sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { eachRow, greatest, least } from "../../storage/word.ts";
import { runStatuses } from "../run.ts";
import {
  type AddedColumn,
  type Counted,
  type Counts,
  type Failed,
  inParts,
  bucketColumns,
  dayMs,
  hourMs,
  minuteMs,
} from "./series.ts";

export const addedColumns: readonly AddedColumn[] = ["runs", ...runStatuses, "sum_ms", ...bucketColumns];

type Span = "minute" | "hour" | "day" | "session" | "ever";
type Key = { readonly series_seq: number; readonly span: Span; readonly at: number };

const addedTypes = Object.fromEntries(
  addedColumns.map((name) => [name, name === "sum_ms" ? "real" : "integer"] as const),
) as Record<AddedColumn, "integer" | "real">;

const rollupColumns = {
  series_seq: "integer",
  span: "text",
  at: "integer",
  first_seq: "integer",
  last_seq: "integer",
  max_ms: "real",
  ...addedTypes,
} as const;

const rollupNames = rawSql(Object.keys(rollupColumns).join(", "));
const added = rawSql(addedColumns.map((name) => `${name} = run_rollup.${name} + excluded.${name}`).join(", "));

/** `series` holds the number of each count's series. */
export async function writeRollups(tx: Tx, counted: readonly Counted[], series: readonly number[]): Promise<void> {
  const sums = new Map<string, Key & Counts>();
  for (const [index, each] of counted.entries()) {
    const series_seq = series[index] ?? 0;
    const at = each.minute * minuteMs;
    addTo(sums, { series_seq, span: "minute", at }, each);
    addTo(sums, { series_seq, span: "hour", at: at - (at % hourMs) }, each);
    addTo(sums, { series_seq, span: "day", at: at - (at % dayMs) }, each);
    addTo(sums, { series_seq, span: "ever", at: 0 }, each);
    if (each.session_seq !== null) addTo(sums, { series_seq, span: "session", at: each.session_seq }, each);
  }
  for (const rows of inParts([...sums.values()])) {
    await tx.run(sql`insert into daybook_run_rollup as run_rollup (${rollupNames}) ${eachRow(rollupColumns, rows)}
      on conflict (series_seq, span, at) do update set ${added},
        max_ms = ${greatest}(run_rollup.max_ms, excluded.max_ms),
        first_seq = ${least}(run_rollup.first_seq, excluded.first_seq),
        last_seq = ${greatest}(run_rollup.last_seq, excluded.last_seq)`);
  }
}

function addTo(sums: Map<string, Key & Counts>, key: Key, counted: Counts): void {
  const id = `${key.series_seq} ${key.span} ${key.at}`;
  const sum = sums.get(id);
  if (sum === undefined) return void sums.set(id, { ...counted, ...key });
  for (const column of addedColumns) sum[column] = (sum[column] ?? 0) + (counted[column] ?? 0);
  sum.max_ms = Math.max(sum.max_ms, counted.max_ms);
  sum.first_seq = Math.min(sum.first_seq, counted.first_seq);
  sum.last_seq = Math.max(sum.last_seq, counted.last_seq);
}

const failureColumns = {
  series_seq: "integer",
  at: "integer",
  fingerprint: "text",
  runs: "integer",
  first_at: "integer",
  last_at: "integer",
  last_seq: "integer",
  last_run_id: "text",
  last_status: "text",
  error_type: "text",
  error_message: "text",
} as const;

type Failure = Readonly<Record<keyof typeof failureColumns, string | number>>;

const failureNames = rawSql(Object.keys(failureColumns).join(", "));

/** Adds failures to those of the same fingerprint and minute. `failed` is in the order of the runs' numbers, and `series` holds
 *  the number of each one's series. */
export async function writeFailures(tx: Tx, failed: readonly Failed[], series: readonly number[]): Promise<void> {
  const sums = new Map<string, Failure & { runs: number; first_at: number }>();
  for (const [index, { seq, id, started_at: startedAt, status, error_type, error_message }] of failed.entries()) {
    const key = {
      series_seq: series[index] ?? 0,
      at: startedAt - (startedAt % minuteMs),
      fingerprint: fingerprint(error_type, error_message),
    };
    const known = sums.get(JSON.stringify(key));
    sums.set(JSON.stringify(key), {
      ...key,
      runs: (known?.runs ?? 0) + 1,
      first_at: Math.min(known?.first_at ?? startedAt, startedAt),
      last_at: startedAt,
      last_seq: seq,
      last_run_id: id,
      last_status: status,
      error_type,
      error_message,
    });
  }
  for (const rows of inParts([...sums.values()])) {
    // Slices are folded in order, so the last failure of this slice is later than any that is stored.
    await tx.run(sql`insert into daybook_run_failure as run_failure (${failureNames}) ${eachRow(failureColumns, rows)}
      on conflict (series_seq, at, fingerprint) do update set runs = run_failure.runs + excluded.runs,
        first_at = ${least}(run_failure.first_at, excluded.first_at), last_at = excluded.last_at,
        last_seq = excluded.last_seq, last_run_id = excluded.last_run_id, last_status = excluded.last_status,
        error_type = excluded.error_type, error_message = excluded.error_message`);
  }
}

const essenceMax = 300;

/** Tells which failures are the same one: "order 17 is gone" and "order 18 is gone" are one error that happened twice. */
export function fingerprint(errorType: string, message: string): string {
  const hash = createHash("sha256").update(`${errorType}\n${essence(message)}`);
  return hash.digest("hex").slice(0, 16);
}

/** The first line of a message without what varies from run to run: numbers, ids and quoted values. */
function essence(message: string): string {
  const line = message.slice(0, 4 * essenceMax).split("\n", 1)[0] ?? "";
  return line
    .replaceAll(/"[^"]*"|'[^']*'|`[^`]*`/g, "…")
    .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{7,}\b|\d+(?:[.:,]\d+)*/gi, "#")
    .slice(0, essenceMax);
}
