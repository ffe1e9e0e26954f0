// Adds failures to those of the same fingerprint and minute. The caller holds the mark.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { eachRow, least } from "../../storage/word.ts";
import { fingerprint } from "./fingerprint.ts";
import { inParts } from "./parts.ts";
import { minuteMs, type Failed } from "./read-slice.ts";

type Failure = {
  readonly series_seq: number;
  readonly at: number;
  readonly fingerprint: string;
  readonly runs: number;
  readonly first_at: number;
} & Last;

/** What is told of the last one, all of it of one run. */
type Last = {
  readonly last_at: number;
  readonly last_seq: number;
  readonly last_run_id: string;
  readonly last_status: string;
  readonly error_type: string;
  readonly error_message: string;
};

const columns = {
  ...({ series_seq: "integer", at: "integer", fingerprint: "text", runs: "integer", first_at: "integer" } as const),
  ...({ last_at: "integer", last_seq: "integer", last_run_id: "text", last_status: "text" } as const),
  ...({ error_type: "text", error_message: "text" } as const),
};

/** Each of `failed`, which are in the order of their numbers, is of the series with its number in `series`. */
export async function writeFailures(tx: Tx, failed: readonly Failed[], series: readonly number[]): Promise<void> {
  const sums = new Map<string, Failure>();
  for (const [index, each] of failed.entries()) {
    const { seq, id, started_at: startedAt, status, error_type, error_message } = each;
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
      ...{ last_at: startedAt, last_seq: seq, last_run_id: id, last_status: status, error_type, error_message },
    });
  }
  for (const rows of inParts([...sums.values()])) {
    // Slices are folded in order, so the last of a later one is later.
    await tx.run(sql`insert into daybook_run_failure as run_failure (series_seq, at, fingerprint, runs, first_at, last_at, last_seq, last_run_id,
        last_status, error_type, error_message) ${eachRow(columns, rows)}
      on conflict (series_seq, at, fingerprint) do update set runs = run_failure.runs + excluded.runs,
        first_at = ${least}(run_failure.first_at, excluded.first_at),
        last_at = excluded.last_at, last_seq = excluded.last_seq, last_run_id = excluded.last_run_id, last_status = excluded.last_status,
        error_type = excluded.error_type, error_message = excluded.error_message`);
  }
}
