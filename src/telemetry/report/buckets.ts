// Runs over time, for a chart: one bucket for each minute, hour or day, empty ones included.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { seekEach } from "../../storage/word.ts";
import { dayMs, hourMs, minuteMs } from "../rollup/slice.ts";
import { ofSeries, together, type Scope } from "./scope.ts";

export type BucketSpan = "minute" | "hour" | "day";

export type Bucket = {
  /** When it begins. */
  readonly at: number;
  readonly runs: number;
  readonly errors: number;
  readonly meanMs: number | null;
  readonly maxMs: number | null;
};

const spanMs: Readonly<Record<BucketSpan, number>> = { minute: minuteMs, hour: hourMs, day: dayMs };

/** The span that gives some dozens of buckets, unless the caller chose one. */
export function spanFor({ window: { since, until } }: Scope, by: BucketSpan | undefined): BucketSpan {
  if (by !== undefined && !(by in spanMs)) throw invalid(`by is ${quote(by)}: "minute", "hour" or "day"`);
  const span = by ?? (until - since <= 3 * hourMs ? "minute" : until - since <= 4 * dayMs ? "hour" : "day");
  const count = Math.ceil((until - since) / spanMs[span]);
  if (count <= limits.bucketsMax) return span;
  throw invalid(
    `${count} buckets of a ${span} are more than ${limits.bucketsMax}: give a shorter stretch or larger ones`,
  );
}

export async function readBuckets(store: Store, scope: Scope, span: BucketSpan): Promise<Bucket[]> {
  const { since, until } = scope.window;
  const step = spanMs[span];
  const from = since - (since % step);
  const found = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = ${span} and run_rollup.at >= ${from}
    and run_rollup.at < ${until}`;
  const rows = await store.readHeavy<{ at: number; runs: number; errors: number; sum_ms: number; max_ms: number }>(
    sql`select run_rollup.at, cast(sum(run_rollup.runs) as bigint) as runs, sum(run_rollup.sum_ms) as sum_ms,
      cast(sum(run_rollup.error + run_rollup.timed_out + run_rollup.lost) as bigint) as errors,
      max(run_rollup.max_ms) as max_ms
    from daybook_run_series run_series ${seekEach("run_rollup", found)} where ${ofSeries(together(scope))}
    group by run_rollup.at`,
  );
  const known = new Map(rows.map((row) => [row.at, row]));
  return Array.from({ length: Math.ceil((until - from) / step) }, (_, index) => {
    const at = from + index * step;
    const row = known.get(at);
    if (row === undefined) return { at, runs: 0, errors: 0, meanMs: null, maxMs: null };
    return { at, runs: row.runs, errors: row.errors, meanMs: row.sum_ms / row.runs, maxMs: row.max_ms };
  });
}
