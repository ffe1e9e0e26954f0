// Cleanup removes events by age, one transaction per slice. Events that a listener has not finished stay, and are counted.
import { notePruning } from "../telemetry/retention/remove.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
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

type Slice = {
  readonly last: number | undefined;
  readonly old: readonly Row[];
  readonly removable: number[];
  unfinished: number;
  dead: number;
  unheard: number;
};

type Stretch = { readonly tenant: string; readonly after: number; readonly until: number };

export async function cleanup(store: Store, tenant: string, options: CleanupOptions): Promise<Cleaned> {
  refuseUnknown(options, ["olderThan", "dryRun"], "cleanup");
  if (options.olderThan === undefined) throw invalid('cleanup needs "olderThan": events.cleanup({ olderThan: "30d" })');
  const until = store.time.atLeast() - durationMs(options.olderThan, "olderThan");
  const total = { removed: 0, unfinished: 0, dead: 0, unheard: 0 };
  for (let after = 0; ;) {
    const stretch = { tenant, after, until };
    const slice =
      options.dryRun === true
        ? await store.readsLong((reader) => findSlice(reader, stretch))
        : await store.write((tx) => cleanSlice(tx, stretch, options), { tenant });
    total.removed += slice.removable.length;
    total.unfinished += slice.unfinished;
    total.dead += slice.dead;
    total.unheard += slice.unheard;
    if (slice.last === undefined) break;
    after = slice.last;
  }
  const { removed, unfinished, dead, unheard } = total;
  return { removed, kept: { unfinished, deadLettered: dead, unheard } };
}

type Row = { seq: number; published_at: number; open: number | null; dead: number | null };

// No listener can start in the past while a slice is decided.
async function cleanSlice(tx: Tx, stretch: Stretch, { olderThan }: CleanupOptions): Promise<Slice> {
  await holdListeners(tx);
  const slice = await findSlice(tx, stretch);
  if (slice.removable.length > 0) await remove(tx, slice, toJson({ olderThan }, { what: "cleanup" }));
  return slice;
}

type Asked = { all<R>(statement: Sql): Awaitable<R[]> };

async function findSlice(asked: Asked, { tenant, after, until }: Stretch): Promise<Slice> {
  const rows = await asked.all<Row>(sql`select seq, published_at,
      (select 1 from daybook_line line where line.kind = 'delivery' and line.kind_seq = event.seq
        and line.kind is not null limit 1) as open,
      (select 1 from daybook_dead_letter dead_letter where dead_letter.event_seq = event.seq and dead_letter.ended_at is null limit 1) as dead
    from daybook_event event where tenant_id = ${tenant} and seq > ${after} order by seq limit ${limits.pruneRowsMax}`);
  const old = rows.filter((row) => row.published_at < until);
  const { heard, newest } = await boundsOf(asked, tenant);
  // Numbers follow the order of publishing, apart from small differences between clocks: a slice without old events is the end.
  const last = old.length === 0 ? undefined : rows.at(-1)?.seq;
  const slice: Slice = { last, old, removable: [], unfinished: 0, dead: 0, unheard: 0 };
  for (const { seq, open, dead } of old) {
    if (dead !== null) slice.dead++;
    else if (open !== null) slice.unfinished++;
    else if (seq > heard) slice.unheard++;
    else if (seq !== newest) slice.removable.push(seq);
  }
  return slice;
}

// The newest event of the book stays, because SQLite derives the next number from it: if that number were reused, the new
// event's deliveries would be taken for the old one's.
async function boundsOf(asked: Asked, tenant: string): Promise<{ heard: number; newest: number }> {
  const [heard] = await asked.all<{ seq: number | null }>(sql`select min(heard_seq) as seq from daybook_listener
    where tenant_id = ${tenant} and state = 'catching_up'`);
  const [newest] = await asked.all<{ seq: number | null }>(sql`select max(seq) as seq from daybook_event`);
  return { heard: heard?.seq ?? Number.MAX_SAFE_INTEGER, newest: newest?.seq ?? 0 };
}

async function remove(tx: Tx, { removable: seqs, old }: Slice, filter: string): Promise<void> {
  await tx.run(sql`delete from daybook_dead_letter where event_seq ${anyOf("integer", seqs)}`);
  await tx.run(sql`delete from daybook_event where seq ${anyOf("integer", seqs)}`);
  const gone = new Set(seqs);
  const made = old.filter(({ seq }) => gone.has(seq)).map((row) => row.published_at);
  await notePruning(tx, { tenant: tx.tenant, what: "event", filter, removed: seqs.length, made });
}
