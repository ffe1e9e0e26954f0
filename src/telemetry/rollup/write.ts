// Adds counts and failures to the rollups. The caller holds the mark, so no other transaction writes these tables.
import { createHash } from "node:crypto";
import { inSlices } from "../../storage/slices.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { excluded, greatest, insertInto, least } from "../../storage/word.ts";
import { runStatuses } from "../run.ts";
import { bucketColumns, dayMs, hourMs, minuteMs } from "./series.ts";
import type { AddedColumn, Counted, Counts, Failed } from "./series.ts";

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
  await inSlices([...sums.values()], (rows) =>
    tx.run(sql`${insertInto("daybook_run_rollup as run_rollup", rollupColumns, rows)}
      on conflict (series_seq, span, at) do update set ${added},
        max_ms = ${greatest}(run_rollup.max_ms, excluded.max_ms),
        first_seq = ${least}(run_rollup.first_seq, excluded.first_seq),
        last_seq = ${greatest}(run_rollup.last_seq, excluded.last_seq)`),
  );
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

/** The columns that tell of the last failure. */
const lastOnes = excluded(Object.keys(failureColumns).slice(5));

type Failure = Readonly<Record<keyof typeof failureColumns, string | number>>;

export type Fingerprinted = Failed & { readonly fingerprint: string };

/** To tell thousands of failures apart takes longer than to write them, so no transaction is held meanwhile. */
export async function fingerprintAll(failed: readonly Failed[]): Promise<Fingerprinted[]> {
  const known = new Map<string, string>();
  const done: Fingerprinted[] = [];
  await inSlices(failed, (slice) => {
    for (const each of slice) {
      const told = `${each.error_type}\n${each.error_message}`;
      const print = known.get(told) ?? fingerprint(each.error_type, each.error_message);
      known.set(told, print);
      done.push({ ...each, fingerprint: print });
    }
  });
  return done;
}

/** Adds failures to those of the same fingerprint and minute. `failed` is in the order of the runs' numbers, and `series` holds
 *  the number of each one's series. */
export async function writeFailures(
  tx: Tx,
  failed: readonly Fingerprinted[],
  series: readonly number[],
): Promise<void> {
  const sums = new Map<string, Failure & { runs: number; first_at: number }>();
  for (const [index, { seq, id, started_at: startedAt, status, ...each }] of failed.entries()) {
    const { fingerprint: print, error_type, error_message } = each;
    const at = startedAt - (startedAt % minuteMs);
    const series_seq = series[index] ?? 0;
    const key = `${series_seq} ${at} ${print}`;
    const known = sums.get(key);
    sums.set(key, {
      series_seq,
      at,
      fingerprint: print,
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
  // Slices are folded in order, so the last failure of this slice is later than any that is stored.
  await inSlices([...sums.values()], (rows) =>
    tx.run(sql`${insertInto("daybook_run_failure as run_failure", failureColumns, rows)}
      on conflict (series_seq, at, fingerprint) do update set runs = run_failure.runs + excluded.runs,
        first_at = ${least}(run_failure.first_at, excluded.first_at), ${lastOnes}`),
  );
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
