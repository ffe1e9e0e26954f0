// Rolls ended runs up, in the processes that work: a second after runs were written, and with every sweep. When folding takes
// long, because thousands of series have runs, it folds less often and counts more runs at once. It has no loop of its own, so
// it leaves an idle book alone. A failure is tried again later and stops no work.
import type { Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store, Tx } from "../../storage/store.ts";
import { forUpdate } from "../../storage/word.ts";
import { countRuns, readFailures, seriesOf, wholeOf, type Counted, type Failed, type Slice } from "./series.ts";
import { fingerprintAll, writeFailures, writeRollups, type Fingerprinted } from "./write.ts";

/** Folds all that can be folded now; resolves to the new mark. */
export async function foldRuns(store: Store): Promise<number> {
  const { seq } = await createHorizon(store)();
  const pace: Pace = { runs: limits.foldHereMax };
  while ((await foldSlice(store, seq, pace)) > 0) continue;
  return readMark(store);
}

const retryMsMax = 60_000;

export type RollUp = ReturnType<typeof openRollUp>;

export function openRollUp(store: Store) {
  const horizon = createHorizon(store);
  const pace: Pace = { runs: limits.foldHereMax };
  let timer: Timer | undefined;
  let folding: Promise<unknown> = Promise.resolve();
  let known: number | undefined;
  let failures = 0;
  let restMs: number = limits.foldMs;
  let stopped = false;

  function soon(ms: number = restMs): void {
    if (timer !== undefined || stopped) return;
    timer = store.clock.after(ms, () => {
      timer = undefined;
      void inTurn(foldUnlessOthersDo).catch(() => soon(Math.min(retryMsMax, limits.foldMs * 2 ** ++failures)));
    });
  }

  // One at a time: two folds of one process would read the same slice twice.
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = folding.then(work);
    folding = done.catch(() => undefined);
    return done;
  }

  // A process that finds the mark moved leaves the folding to the one that moved it. It tries again in case that one stops.
  async function foldUnlessOthersDo(): Promise<void> {
    const mark = await readMark(store);
    const others = known !== undefined && known !== mark;
    known = mark;
    if (others) return soon();
    await foldAll();
  }

  async function foldAll(): Promise<number> {
    const begun = store.clock.monotonic();
    const { seq, open } = await horizon();
    while ((await foldSlice(store, seq, pace)) > 0) continue;
    const tookMs = store.clock.monotonic() - begun;
    restMs = Math.min(limits.foldMsMax, Math.max(limits.foldMs, tookMs * limits.foldRestFactor));
    failures = 0;
    known = await readMark(store);
    if (open) soon();
    return known;
  }

  return {
    /** Folds in a moment, because runs were written, unless another process does. */
    soon: () => soon(),
    /** Folds all that can be folded now; resolves to the new mark. */
    fold: () => inTurn(foldAll),
    async stop(): Promise<void> {
      timer?.cancel();
      await inTurn(foldAll).catch(() => undefined);
      stopped = true;
      timer?.cancel();
    },
  };
}

/** Every run up to `seq` is visible. `open`: transactions are still writing runs beyond it, so look again later. */
type Horizon = { readonly seq: number; readonly open: boolean };

/** Finds the horizon, and remembers from one look to the next which transactions it waits for. On SQLite one writer numbers rows
 *  in the order of commits. On PostgreSQL a row gets its number when it is inserted, and a transaction with a lower number may
 *  commit later: a fold up to the highest visible number would miss its run for ever. No delay makes this safe, because a
 *  transaction may be slow, so the horizon asks which ones are still writing. */
export function createHorizon(store: Pick<Store, "dialect" | "read">): () => Promise<Horizon> {
  const highest = sql`select max(seq) as seq from daybook_run`;
  if (store.dialect === "sqlite") return async () => ({ seq: await readSeq(store, highest), open: false });
  const lastGiven = sql`select case when is_called then last_value else 0 end as seq from daybook_run_seq_seq`;
  let reached = 0;
  let awaited: { readonly seq: number; readonly writers: ReadonlySet<string> } | undefined;

  return async () => {
    // In this order: a transaction locks the table before it gets a number, and holds the lock until its commit is visible. So a
    // transaction with a number up to this one is among the writers that are read next, or its run is visible.
    const given = await readSeq(store, lastGiven);
    const writers = await readWriters(store);
    if (awaited !== undefined && !writers.some((each) => awaited?.writers.has(each))) {
      reached = Math.max(reached, awaited.seq);
      awaited = undefined;
    }
    if (writers.length === 0) {
      [reached, awaited] = [given, undefined];
      return { seq: reached, open: false };
    }
    awaited ??= { seq: given, writers: new Set(writers) };
    return { seq: reached, open: true };
  };
}

async function readSeq(store: Pick<Store, "read">, statement: Sql): Promise<number> {
  const [row] = await store.read<{ seq: number | null }>(statement);
  return row?.seq ?? 0;
}

/** The transactions that may hold invisible rows of `run`: an insert locks its table before anything else. */
async function readWriters(store: Pick<Store, "read">): Promise<string[]> {
  const rows = await store.read<{ writer: string }>(sql`select virtualtransaction as writer from pg_locks
    where locktype = 'relation' and relation = 'daybook_run'::regclass and granted
      and database = (select oid from pg_database where datname = current_database())
      and mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`);
  return rows.map(({ writer }) => writer);
}

/** The mark: rollups count every run up to this number. */
export function readMark(store: Pick<Store, "read">): Promise<number> {
  return readSeq(store, sql`select folded_seq as seq from daybook_run_fold`);
}

/** How many runs the next slice takes, kept from one slice to the next. A transaction writes rows of counts: many runs of few
 *  series make few rows, and runs of many series get cheaper the more of them one slice counts. Where every run makes a row of its
 *  own, slices are smaller, so that the transaction stays short. It begins with few runs and adapts. */
export type Pace = { runs: number };

/** Adds at most one slice of the runs up to `horizon` to the rollups; resolves to how many numbers it passed. It reads off the event
 *  loop; its transaction adds some rows of counts and moves the mark, and does nothing if another process has moved the mark. */
export async function foldSlice(
  store: Store,
  horizon: number,
  pace: Pace = { runs: limits.foldRunsMax },
): Promise<number> {
  const after = await readMark(store);
  const { slice, counted, read } = await countSlice(store, after, horizon, pace);
  if (slice.to <= after) return 0;
  const fails = counted.some(({ runs, success }) => runs > success);
  const failed = fails ? await fingerprintAll(await read<Failed>(readFailures(slice))) : [];
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
  failed: readonly Fingerprinted[],
): Promise<boolean> {
  const mark = await lockMark(tx);
  if (mark !== after) return false;
  const [own, whole] = [await seriesOf(tx, counted), await seriesOf(tx, counted.map(wholeOf))];
  await writeRollups(tx, [...counted, ...counted], [...own, ...whole]);
  await writeFailures(tx, failed, await seriesOf(tx, failed));
  await tx.run(sql`update daybook_run_fold set folded_seq = ${to}`);
  return true;
}

/** Keeps other transactions from folding, and from removing runs that are folded, until this one ends. */
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
