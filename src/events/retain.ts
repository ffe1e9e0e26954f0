// Retention removes events by age, one transaction per slice. Events that a listener has not finished stay, and are counted.
import { limits } from "../core/limits.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { account } from "../telemetry/retention/remove.ts";
import { holdListeners } from "./listener.ts";

/** How many old events stay, by the reason. */
export type KeptEvents = {
  /** A delivery of it has not ended. */
  readonly unfinished: number;
  /** A dead letter is about it. */
  readonly deadLettered: number;
  /** A listener that is catching up has not reached it. */
  readonly unheard: number;
};

type Stretch = { readonly tenant: string; readonly after: number; readonly by: number };
type Row = {
  readonly seq: number;
  readonly published_at: number;
  readonly open: number | null;
  readonly dead: number | null;
};
/** What becomes of an old event: it goes, or one of the reasons to stay. The newest event of the book counts as neither. */
type Fate = "removed" | "newest" | keyof KeptEvents;
type Slice = { readonly last: number | undefined; readonly fates: Map<Fate, Row[]> };

/** Those that were published before then. */
export async function retainEvents(
  store: Store,
  tenant: string,
  { by, dryRun }: { readonly by: number; readonly dryRun: boolean },
): Promise<{ readonly events: number; readonly kept: KeptEvents; readonly slices: number }> {
  const total = { removed: 0, newest: 0, unfinished: 0, deadLettered: 0, unheard: 0 };
  let slices = 0;
  for (let after: number | undefined = 0; after !== undefined;) {
    const stretch: Stretch = { tenant, after, by };
    if (!(await hasOld(store, stretch))) break;
    let slice: Slice = await store.readsLong((reader) => findSlice(reader, stretch));
    // Most hours there is nothing to remove, and then nobody waits for a transaction.
    if (!dryRun && slice.fates.has("removed")) {
      slice = await store.write((tx) => removeSlice(tx, stretch), { tenant });
      slices++;
    }
    for (const [fate, rows] of slice.fates) total[fate] += rows.length;
    after = slice.last;
  }
  const { removed, unfinished, deadLettered, unheard } = total;
  return { events: removed, kept: { unfinished, deadLettered, unheard }, slices };
}

// Most tenants have nothing old, and a long read starts a thread.
async function hasOld(store: Store, { tenant, after, by }: Stretch): Promise<boolean> {
  const found = await store.readHeavy(sql`select 1 as one from (select published_at from daybook_event
    where tenant_id = ${tenant} and seq > ${after} order by seq limit ${limits.retainRowsMax}) as next
    where published_at < ${by} limit 1`);
  return found.length > 0;
}

async function removeSlice(tx: Tx, stretch: Stretch): Promise<Slice> {
  // No listener can start in the past while a slice is decided.
  await holdListeners(tx);
  const slice = await findSlice(tx, stretch);
  const rows = slice.fates.get("removed") ?? [];
  if (rows.length === 0) return slice;
  const seqs = anyOf(
    "integer",
    rows.map(({ seq }) => seq),
  );
  await tx.run(sql`delete from daybook_dead_letter where event_seq ${seqs}`);
  const removed = await tx.run(sql`delete from daybook_event where seq ${seqs}`);
  const made = rows.map((row) => row.published_at);
  await account(tx, tx.tenant, [{ what: "event", reason: "age", removed, made }]);
  return slice;
}

type Asked = { all<R>(statement: Sql): Awaitable<R[]> };

async function findSlice(asked: Asked, { tenant, after, by }: Stretch): Promise<Slice> {
  const rows = await asked.all<Row>(sql`select seq, published_at,
      (select 1 from daybook_line line where line.kind = 'delivery' and line.kind_seq = event.seq
        and line.kind is not null limit 1) as open,
      (select 1 from daybook_dead_letter dead_letter where dead_letter.event_seq = event.seq and dead_letter.ended_at is null limit 1) as dead
    from daybook_event event where tenant_id = ${tenant} and seq > ${after} order by seq limit ${limits.retainRowsMax}`);
  const [heard] = await asked.all<{ seq: number | null }>(sql`select min(heard_seq) as seq from daybook_listener
    where tenant_id = ${tenant} and state = 'catching_up'`);
  const [newest] = await asked.all<{ seq: number | null }>(sql`select max(seq) as seq from daybook_event`);
  const fateOf = ({ seq, open, dead }: Row): Fate => {
    if (dead !== null) return "deadLettered";
    if (open !== null) return "unfinished";
    if (seq > (heard?.seq ?? Number.MAX_SAFE_INTEGER)) return "unheard";
    // The newest event of the book stays, because SQLite derives the next number from it: if that number were reused, the new
    // event's deliveries would be taken for the old one's.
    return seq === newest?.seq ? "newest" : "removed";
  };
  const old = rows.filter((row) => row.published_at < by);
  // Numbers follow the order of publishing, apart from small differences between clocks: a slice without old events is the end.
  return { last: old.length === 0 ? undefined : rows.at(-1)?.seq, fates: Map.groupBy(old, fateOf) };
}
