// A fold adds the runs that ended since the last one to the rollups, a slice at a time. It reads off the event loop; its
// transaction adds some rows of counts and moves the mark, and does nothing if another process has moved the mark.
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { seriesOf, wholeOf } from "./series.ts";
import { countRuns, readFailures, type Counted, type Failed, type Slice } from "./slice.ts";
import { writeFailures, writeRollups } from "./write.ts";

/** The mark: rollups count every run up to this number. */
export async function readMark(store: Pick<Store, "read">): Promise<number> {
  const [mark] = await store.read<{ folded_seq: number }>(sql`select folded_seq from daybook_run_fold`);
  return mark?.folded_seq ?? 0;
}

/** How many runs the next slice takes, kept from one slice to the next. A transaction writes rows of counts: many runs of few
 *  series make few rows, and runs of many series get cheaper the more of them one slice counts. Where every run makes a row of its
 *  own, slices are smaller, so that the transaction stays short. */
export type Pace = { runs: number };

/** Begins with few runs and adapts. */
export function newPace(): Pace {
  return { runs: limits.foldHereMax };
}

/** Folds at most one slice of the runs up to `horizon`; resolves to how many numbers it passed. */
export async function foldSlice(
  store: Store,
  horizon: number,
  pace: Pace = { runs: limits.foldRunsMax },
): Promise<number> {
  const after = await readMark(store);
  const { slice, counted, read } = await countSlice(store, after, horizon, pace);
  if (slice.to <= after) return 0;
  const failed = counted.some(({ runs, success }) => runs > success) ? await read<Failed>(readFailures(slice)) : [];
  // Retention removes no run above the mark, so the runs that were read are still there, and no others are among them.
  const folded = await store.write((tx) => addSlice(tx, slice, counted, failed));
  return folded ? slice.to - after : 0;
}

async function countSlice(
  store: Store,
  after: number,
  horizon: number,
  pace: Pace,
): Promise<{ slice: Slice; counted: Counted[]; read: Store["read"] }> {
  const slice = { after, to: Math.min(horizon, after + pace.runs) };
  const size = slice.to - after;
  // Asking another thread takes longer than reading a few runs here.
  const read = size <= limits.foldHereMax ? store.read : store.readHeavy;
  const counted = size <= 0 ? [] : await read<Counted>(countRuns(slice));
  // The next slice is likely to be like this one. It aims a little lower, because counting a slice again costs more than it gains.
  const share = shareOf(counted);
  const fitting = Math.floor((0.75 * size) / share);
  if (share > 1 && size > limits.foldHereMax) {
    pace.runs = Math.max(limits.foldHereMax, fitting);
    return countSlice(store, after, horizon, pace);
  }
  // More runs of the same series make no more rows; only a larger slice can find that out.
  if (size === pace.runs) pace.runs = Math.min(limits.foldRunsMax, Math.max(fitting, Math.ceil(1.25 * size)));
  return { slice, counted, read };
}

/** The share of what one transaction may write that this slice takes. */
function shareOf(counted: readonly Counted[]): number {
  const failed = counted.reduce((sum, { runs, success }) => sum + runs - success, 0);
  return Math.max(Math.max(1, counted.length) / limits.foldCountsMax, failed / limits.foldFailuresMax);
}

async function addSlice(
  tx: Tx,
  { after, to }: Slice,
  counted: readonly Counted[],
  failed: readonly Failed[],
): Promise<boolean> {
  const mark = await lockMark(tx);
  if (mark !== after) return false;
  const [own, whole] = [await seriesOf(tx, counted), await seriesOf(tx, counted.map(wholeOf))];
  await writeRollups(tx, [...counted, ...counted], [...own, ...whole]);
  await writeFailures(tx, failed, await seriesOf(tx, failed));
  await tx.run(sql`update daybook_run_fold set folded_seq = ${to}`);
  return true;
}

/** Keeps all others from folding, and from removing runs that are folded, until the transaction ends. */
export async function lockMark(tx: Tx): Promise<number> {
  const mark = await tx.get<{ folded_seq: number }>(sql`select folded_seq from daybook_run_fold ${forUpdate}`);
  return mark?.folded_seq ?? 0;
}

/** For a transaction that removed runs. SQLite gives the next row the highest number that is left plus one, and a mark above that
 *  number would skip it. PostgreSQL never gives a number twice. */
export async function lowerMark(tx: Tx): Promise<void> {
  if (tx.dialect !== "sqlite") return;
  await tx.run(
    sql`update daybook_run_fold set folded_seq = min(folded_seq, (select coalesce(max(seq), 0) from daybook_run))`,
  );
}
