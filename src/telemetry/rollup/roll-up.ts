// Rolls ended runs up, in the processes that work: a second after runs were written, and with every sweep. When folding takes
// long, because thousands of series have runs, it folds less often and counts more runs at once. It has no loop of its own, so
// it leaves an idle book alone. A failure is tried again later and stops no work.
import type { Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { foldSlice, newPace, readMark } from "./fold.ts";

export type RollUp = {
  /** Folds in a moment, because runs were written, unless another process does. */
  soon(): void;
  /** Folds all that can be folded now; resolves to the new mark. */
  fold(): Promise<number>;
  stop(): Promise<void>;
};

/** Folds all that can be folded now; resolves to the new mark. */
export async function foldRuns(store: Store): Promise<number> {
  const { seq } = await createHorizon(store)();
  const pace = newPace();
  while ((await foldSlice(store, seq, pace)) > 0) continue;
  return readMark(store);
}

const retryMsMax = 60_000;

export function openRollUp(store: Store): RollUp {
  const horizon = createHorizon(store);
  const pace = newPace();
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
    soon: () => soon(),
    fold: () => inTurn(foldAll),
    async stop() {
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
  if (store.dialect === "sqlite") return async () => ({ seq: await highestSeq(store), open: false });
  let reached = 0;
  let awaited: { readonly seq: number; readonly writers: ReadonlySet<string> } | undefined;

  return async () => {
    // In this order: a transaction locks the table before it gets a number, and holds the lock until its commit is visible. So a
    // transaction with a number up to this one is among the writers that are read next, or its run is visible.
    const given = await lastGiven(store);
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

async function highestSeq(store: Pick<Store, "read">): Promise<number> {
  const [row] = await store.read<{ seq: number | null }>(sql`select max(seq) as seq from daybook_run`);
  return row?.seq ?? 0;
}

async function lastGiven(store: Pick<Store, "read">): Promise<number> {
  const [row] = await store.read<{ seq: number }>(
    sql`select case when is_called then last_value else 0 end as seq from daybook_run_seq_seq`,
  );
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
