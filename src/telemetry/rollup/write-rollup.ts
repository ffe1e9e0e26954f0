// Adds counts to the rollups. The caller holds the mark, so nobody else writes these tables.
import { rawSql, sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { eachRow, greatest, least } from "../../storage/word.ts";
import { runStatuses } from "../run.ts";
import { bucketColumns } from "./duration-bucket.ts";
import { minuteMs, type AddedColumn, type Counted, type Counts } from "./read-slice.ts";
import { inParts } from "./parts.ts";

export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

export const addedColumns: readonly AddedColumn[] = ["runs", ...runStatuses, "sum_ms", ...bucketColumns];

type Span = "minute" | "hour" | "day" | "session" | "ever";
type Key = { readonly series_seq: number; readonly span: Span; readonly at: number };

const columns = {
  ...({ series_seq: "integer", span: "text", at: "integer" } as const),
  ...({ first_seq: "integer", last_seq: "integer", max_ms: "real" } as const),
  ...(Object.fromEntries(addedColumns.map((name) => [name, name === "sum_ms" ? "real" : "integer"] as const)) as Record<
    AddedColumn,
    "integer" | "real"
  >),
};
const names = rawSql(Object.keys(columns).join(", "));
const added = rawSql(addedColumns.map((name) => `${name} = run_rollup.${name} + excluded.${name}`).join(", "));

/** Each of `counted` is of the series with its number in `series`. */
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
    await tx.run(sql`insert into daybook_run_rollup as run_rollup (${names}) ${eachRow(columns, rows)}
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
