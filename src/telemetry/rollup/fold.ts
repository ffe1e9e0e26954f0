// Fold: the runs that ended since the last time are added to the rollups, a slice at a time. Reading is done off the event
// loop; the transaction adds some rows of counts and moves the mark, and does nothing if somebody else has moved it.
import { sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { limits } from "../../core/limits.ts";
import { countRuns, readFailures, type Counted, type Failed, type Slice } from "./slice.ts";
import { seriesOf, wholeOf } from "./series.ts";
import { writeFailures, writeRollups } from "./write.ts";

/** Up to which run all are in the rollups. */
export async function readMark(store: Pick<Store, "read">): Promise<number> {
  const [mark] = await store.read<{ folded_seq: number }>(sql`select folded_seq from daybook_run_fold`);
  return mark?.folded_seq ?? 0;
}

/** How many runs the next slice takes, kept from one slice to the next. What a transaction writes is rows of counts: runs of
 *  few series are few rows, however many they are, and runs of many series are folded the cheaper the more of them are counted
 *  together. Where every run is a row of its own, a slice is smaller, so that the transaction stays short. */
export type Pace = { runs: number };

/** Begins with a few and finds out. */
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
  // Nobody removes a run that is not folded, so what was read is still there, and nothing else is in between.
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
  // A few are read faster than another thread is asked.
  const read = size <= limits.foldHereMax ? store.read : store.readHeavy;
  const counted = size <= 0 ? [] : await read<Counted>(countRuns(slice));
  // What comes next is like what came last. A little less is aimed at, because to count a slice anew costs more than it gains.
  const share = shareOf(counted);
  const fitting = Math.floor((0.75 * size) / share);
  if (share > 1 && size > limits.foldHereMax) {
    pace.runs = Math.max(limits.foldHereMax, fitting);
    return countSlice(store, after, horizon, pace);
  }
  // More runs of the same series make no more rows, which only a larger slice can tell.
  if (size === pace.runs) pace.runs = Math.min(limits.foldRunsMax, Math.max(fitting, Math.ceil(1.25 * size)));
  return { slice, counted, read };
}

/** How much of what one transaction may write a slice comes to. */
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

/** Until commit nobody else folds, or removes what was folded. */
export async function lockMark(tx: Tx): Promise<number> {
  const mark = await tx.get<{ folded_seq: number }>(sql`select folded_seq from daybook_run_fold ${forUpdate}`);
  return mark?.folded_seq ?? 0;
}

/** After rows of `run` were removed: SQLite gives the highest number that is left, plus one, to the next row, and a mark above
 *  that would take it for folded. PostgreSQL never gives a number twice. */
export async function lowerMark(tx: Tx): Promise<void> {
  if (tx.dialect !== "sqlite") return;
  await tx.run(
    sql`update daybook_run_fold set folded_seq = min(folded_seq, (select coalesce(max(seq), 0) from daybook_run))`,
  );
}
