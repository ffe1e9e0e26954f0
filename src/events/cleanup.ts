// Cleanup removes events by age, one transaction per slice. Events that a listener has not finished stay, and are counted.
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { notePruning } from "../telemetry/retention/remove.ts";
import { holdListeners } from "./listener.ts";

export type CleanupOptions = {
  /** Only what was published at least this long ago. */
  readonly olderThan: Duration;
  /** Counts what would be removed, and removes nothing. */
  readonly dryRun?: boolean;
};

export type Cleaned = {
  readonly removed: number;
  /** How many old events stay, by the reason. */
  readonly kept: {
    /** A delivery of it has not ended. */
    readonly unfinished: number;
    /** A dead letter is about it. */
    readonly deadLettered: number;
    /** A listener that is catching up has not reached it. */
    readonly unheard: number;
  };
};

type Stretch = { readonly tenant: string; readonly after: number; readonly until: number };
type Row = {
  readonly seq: number;
  readonly published_at: number;
  readonly open: number | null;
  readonly dead: number | null;
};
/** What becomes of an old event: it goes, or one of the reasons to stay. The newest event of the book counts as neither. */
type Fate = "removed" | "newest" | keyof Cleaned["kept"];
type Slice = { readonly last: number | undefined; readonly fates: Map<Fate, Row[]> };

export async function cleanup(store: Store, tenant: string, options: CleanupOptions): Promise<Cleaned> {
  refuseUnknown(options, ["olderThan", "dryRun"], "cleanup");
  if (options.olderThan === undefined) throw invalid('cleanup needs "olderThan": events.cleanup({ olderThan: "30d" })');
  const until = store.time.atLeast() - durationMs(options.olderThan, "olderThan");
  const total = { removed: 0, newest: 0, unfinished: 0, deadLettered: 0, unheard: 0 };
  for (let after: number | undefined = 0; after !== undefined;) {
    const stretch = { tenant, after, until };
    const slice: Slice =
      options.dryRun === true
        ? await store.readsLong((reader) => findSlice(reader, stretch))
        : await store.write((tx) => cleanSlice(tx, stretch, options), { tenant });
    for (const [fate, rows] of slice.fates) total[fate] += rows.length;
    after = slice.last;
  }
  const { removed, unfinished, deadLettered, unheard } = total;
  return { removed, kept: { unfinished, deadLettered, unheard } };
}

async function cleanSlice(tx: Tx, stretch: Stretch, { olderThan }: CleanupOptions): Promise<Slice> {
  // No listener can start in the past while a slice is decided.
  await holdListeners(tx);
  const slice = await findSlice(tx, stretch);
  const removed = slice.fates.get("removed") ?? [];
  if (removed.length === 0) return slice;
  const seqs = anyOf(
    "integer",
    removed.map(({ seq }) => seq),
  );
  await tx.run(sql`delete from daybook_dead_letter where event_seq ${seqs}`);
  await tx.run(sql`delete from daybook_event where seq ${seqs}`);
  const filter = toJson({ olderThan }, { what: "cleanup" });
  const made = removed.map((row) => row.published_at);
  await notePruning(tx, { tenant: tx.tenant, what: "event", filter, removed: removed.length, made });
  return slice;
}

type Asked = { all<R>(statement: Sql): Awaitable<R[]> };

async function findSlice(asked: Asked, { tenant, after, until }: Stretch): Promise<Slice> {
  const rows = await asked.all<Row>(sql`select seq, published_at,
      (select 1 from daybook_line line where line.kind = 'delivery' and line.kind_seq = event.seq
        and line.kind is not null limit 1) as open,
      (select 1 from daybook_dead_letter dead_letter where dead_letter.event_seq = event.seq and dead_letter.ended_at is null limit 1) as dead
    from daybook_event event where tenant_id = ${tenant} and seq > ${after} order by seq limit ${limits.pruneRowsMax}`);
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
  const old = rows.filter((row) => row.published_at < until);
  // Numbers follow the order of publishing, apart from small differences between clocks: a slice without old events is the end.
  return { last: old.length === 0 ? undefined : rows.at(-1)?.seq, fates: Map.groupBy(old, fateOf) };
}
