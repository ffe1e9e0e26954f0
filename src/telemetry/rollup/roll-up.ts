// Folds from time to time, in the processes that work: a second after runs were written, and with every sweep. Where that takes
// long, because thousands of series have runs, it folds less often and counts more runs together. It has no loop of its own; a
// book in which nothing runs is left alone. Whatever fails here is tried again later and stops nobody.
import type { Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import type { Store } from "../../storage/store.ts";
import { foldSlice, newPace, readMark } from "./fold.ts";
import { sql } from "../../storage/sql.ts";

export type Folder = {
  /** Runs were written: fold them in a moment, unless another process does. */
  soon(): void;
  /** Folds all that can be folded now; resolves to up to which run that is. */
  fold(): Promise<number>;
  stop(): Promise<void>;
};

/** Folds all that can be folded now. */
export async function foldRuns(store: Store): Promise<number> {
  const { seq } = await createHorizon(store)();
  const pace = newPace();
  while ((await foldSlice(store, seq, pace)) > 0) continue;
  return readMark(store);
}

const retryMsMax = 60_000;

export function openFolder(store: Store): Folder {
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

  // One at a time: two of the same process would only read the same slice twice.
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = folding.then(work);
    folding = done.catch(() => undefined);
    return done;
  }

  // Who finds the mark elsewhere than it left it is not the one who folds; who no longer does is the next to try.
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

// Up to which number all runs are there. On SQLite one writer numbers rows in the order of commits. On PostgreSQL a number is
// given out when a row is inserted, and a transaction that began earlier may commit it later: a fold that went by the
// highest number it sees would pass that run by for ever. No lag makes this safe, because a transaction may be slow; so we
// ask who is still writing.

export type Horizon = {
  readonly seq: number;
  /** Somebody is still writing runs beyond it: look again later. */
  readonly open: boolean;
};

/** Remembers from one look to the next whom it waits for. */
export function createHorizon(store: Pick<Store, "dialect" | "read">): () => Promise<Horizon> {
  if (store.dialect === "sqlite") return async () => ({ seq: await highestSeq(store), open: false });
  let reached = 0;
  let awaited: { readonly seq: number; readonly writers: ReadonlySet<string> } | undefined;

  return async () => {
    // In this order: whoever has a number up to this one held its lock before it got the number, and holds it until its
    // commit can be seen. So it is among the writers that are read next, or what it wrote is there.
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

/** The transactions that may hold rows of `run` which nobody sees yet: an insert locks its table before anything else. */
async function readWriters(store: Pick<Store, "read">): Promise<string[]> {
  const rows = await store.read<{ writer: string }>(sql`select virtualtransaction as writer from pg_locks
    where locktype = 'relation' and relation = 'daybook_run'::regclass and granted
      and database = (select oid from pg_database where datname = current_database())
      and mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`);
  return rows.map(({ writer }) => writer);
}
