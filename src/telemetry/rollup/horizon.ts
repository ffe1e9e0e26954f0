// Up to which number all runs are there. On SQLite one writer numbers rows in the order of commits. On PostgreSQL a number is
// given out when a row is inserted, and a transaction that began earlier may commit it later: a fold that went by the
// highest number it sees would pass that run by for ever. No lag makes this safe, because a transaction may be slow; so we
// ask who is still writing.
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";

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
