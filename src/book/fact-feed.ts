// Follows the facts of one tenant, once for all who listen to it in this process, and keeps the latest of them for those who come back.
//
// How far a reader has read is one number for each source. PostgreSQL gives out numbers before the commit, so a reader's number is one
// below which nothing can appear any more; what stands above it may be told twice to who comes back, and is never left out.
import type { Timer } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { factSources, type FactRow, type FactSource } from "./fact-sources.ts";

/** `position` is what its reader gives to read on after it. */
export type LiveFact = { readonly topic: string; readonly position: string; readonly data: Record<string, unknown> };

export type FactFeed = {
  /** Tells what came after `position`, and from now on; without it only what comes. Resolves once the past is told. `lost` is called
   *  when that is too far back. The function that it resolves to ends it. */
  follow(position: string | undefined, reader: FactReader): Promise<() => void>;
  readonly readers: number;
  close(): void;
};

export type FactReader = { hear(fact: LiveFact): void; lost(position: string): void };

type Kept = { readonly order: number; readonly source: number; readonly seq: number; readonly fact: LiveFact };
type Settled = { readonly heads: readonly number[]; readonly beyond: number; readonly sinceMs: number };

const tickMs = 200;
const retryMs = 1000;
const rowsMax = 500;
const keptMax = 5000;
/** A reader that is further behind than this reads the lists again: that is less than all that happened. */
const behindMax = 20_000;
/** Numbers that a transaction may hold which is under way as the feed begins. */
const lookBack = 1000;

export function openFactFeed(store: Store, tenant: string): FactFeed {
  const { waitClock: clock } = store;
  const readers = new Set<FactReader>();
  /** Below it nothing appears any more. */
  let settled: number[] = [];
  /** What was told above `settled`. */
  let told: Set<number>[] = [];
  /** All that was told above it is in `kept`. */
  let floor: number[] = [];
  let kept: Kept[] = [];
  let order = 0;
  let joining = 0;
  let pending: Settled | undefined;
  let timer: Timer | undefined;
  let begun: Promise<void> | undefined;
  let closed = false;

  async function begin(): Promise<void> {
    const heads = await readHeads();
    settled = heads.map((head, index) => (isExact(index) ? head : Math.max(0, head - lookBack)));
    floor = [...settled];
    told = factSources.map(() => new Set<number>());
    for (const [index, source] of factSources.entries()) {
      if (isExact(index)) continue;
      for (const row of await rowsOf(source, settled[index] ?? 0, lookBack)) {
        told[index]?.add(row.seq);
        keep(index, source, row);
      }
    }
    tickLater(tickMs);
  }

  /** SQLite commits one unit after the other, so that its numbers appear in their order. */
  function isExact(index: number): boolean {
    return store.dialect === "sqlite" || factSources[index]?.inOrder === true;
  }

  async function readHeads(): Promise<number[]> {
    const heads: number[] = [];
    for (const source of factSources) {
      const [row] = await store.read<{ seq: number | null }>(source.head(tenant));
      heads.push(Number(row?.seq ?? 0));
    }
    return heads;
  }

  function rowsOf(source: FactSource, after: number, limit = rowsMax): Promise<FactRow[]> {
    return store.read<FactRow>(source.read(tenant, after, limit));
  }

  function tickLater(ms: number): void {
    if (!closed) timer = clock.after(ms, () => void tick());
  }

  async function tick(): Promise<void> {
    try {
      let more = false;
      for (const [index, source] of factSources.entries()) more = (await readNew(index, source)) || more;
      await settle();
      tickLater(more ? 0 : tickMs);
    } catch {
      // The book cannot be read for a moment: nothing is lost by reading later.
      tickLater(retryMs);
    }
  }

  async function readNew(index: number, source: FactSource): Promise<boolean> {
    const seen = told[index];
    const from = settled[index] ?? 0;
    const limit = rowsMax + (seen?.size ?? 0);
    const rows = await rowsOf(source, from, limit);
    for (const row of rows) {
      if (seen?.has(row.seq) === true) continue;
      if (isExact(index)) settled[index] = row.seq;
      else seen?.add(row.seq);
      tell(index, source, row);
    }
    return rows.length === limit;
  }

  function tell(index: number, source: FactSource, row: FactRow): void {
    const fact = keep(index, source, row);
    for (const reader of readers) reader.hear(fact);
  }

  function keep(index: number, { topic, tell: dataOf }: FactSource, row: FactRow): LiveFact {
    const fact = { topic, position: positionOf(settled), data: dataOf(row) };
    kept.push({ order: order++, source: index, seq: row.seq, fact });
    if (kept.length > keptMax * 2) forgetOldest();
    return fact;
  }

  function forgetOldest(): void {
    for (const { source, seq } of kept.slice(0, kept.length - keptMax))
      floor[source] = Math.max(floor[source] ?? 0, seq);
    kept = kept.slice(-keptMax);
  }

  // Once every transaction that was under way as the heads were read has ended, nothing below them can appear.
  async function settle(): Promise<void> {
    if (store.dialect === "sqlite") return;
    const nowMs = clock.monotonic();
    const [snapshot] = await store.read<{ oldest: string; next: string }>(
      sql`select pg_snapshot_xmin(pg_current_snapshot())::text as oldest, pg_snapshot_xmax(pg_current_snapshot())::text as next`,
    );
    if (snapshot === undefined) return;
    if (
      pending !== undefined &&
      (Number(snapshot.oldest) >= pending.beyond || nowMs - pending.sinceMs > limits.liveGapMs)
    ) {
      for (const [index, head] of pending.heads.entries()) if (!isExact(index)) moveTo(index, head);
      pending = undefined;
    }
    pending ??= {
      heads: factSources.map((_, index) => highest(index)),
      beyond: Number(snapshot.next) + 1,
      sinceMs: nowMs,
    };
  }

  function highest(index: number): number {
    let most = settled[index] ?? 0;
    for (const seq of told[index] ?? []) most = Math.max(most, seq);
    return most;
  }

  function moveTo(index: number, head: number): void {
    settled[index] = Math.max(settled[index] ?? 0, head);
    for (const seq of told[index] ?? []) if (seq <= head) told[index]?.delete(seq);
  }

  /** What is in the book between the reader's position and what is kept here. False when it is too much. */
  async function catchUp(position: number[], reader: FactReader): Promise<boolean> {
    let behind = 0;
    for (const [index, source] of factSources.entries()) {
      for (;;) {
        const from = position[index] ?? 0;
        const until = floor[index] ?? 0;
        if (from >= until) break;
        const rows = (await rowsOf(source, from)).filter(({ seq }) => seq <= until);
        behind += rows.length;
        if (behind > behindMax) return false;
        for (const row of rows) {
          position[index] = row.seq;
          reader.hear({ topic: source.topic, position: positionOf(position), data: source.tell(row) });
        }
        // What is left of these numbers is of other tenants.
        if (rows.length === 0) position[index] = until;
      }
    }
    return factSources.every((_, index) => (position[index] ?? 0) >= (floor[index] ?? 0)) || catchUp(position, reader);
  }

  return {
    get readers() {
      return readers.size + joining;
    },
    async follow(position, reader) {
      joining++;
      try {
        await (begun ??= begin());
        const from = position === undefined ? undefined : readPosition(position);
        if (from !== undefined) {
          const since = order;
          if (await catchUp(from, reader)) {
            // From here to `add` nothing is awaited, so that nothing is told in between. What was told meanwhile may stand below.
            for (const each of kept) {
              if (each.seq > (from[each.source] ?? 0) || each.order >= since) reader.hear(each.fact);
            }
          } else reader.lost(positionOf(settled));
        }
        readers.add(reader);
      } finally {
        joining--;
      }
      return () => void readers.delete(reader);
    },
    close() {
      closed = true;
      timer?.cancel();
      readers.clear();
    },
  };
}

function positionOf(numbers: readonly number[]): string {
  return factSources.map(({ letter }, index) => `${letter}${numbers[index] ?? 0}`).join(".");
}

/** Undefined for a text that is none; a source that it does not name is read from its beginning on. */
export function readPosition(text: string): number[] | undefined {
  if (!/^([a-z]\d{1,15})(\.[a-z]\d{1,15}){0,9}$/.test(text)) return undefined;
  const numbers = new Map(text.split(".").map((part) => [part.slice(0, 1), Number(part.slice(1))]));
  return factSources.map(({ letter }) => numbers.get(letter) ?? 0);
}
