// Follows the facts of one tenant, once for all who listen to it in this process, and keeps the latest of them for those who come back.
//
// How far a reader has read is one number for each source, below which nothing can appear any more (fact-horizon.ts). What stands above
// it may be told twice to who comes back, and is never left out. Where something may have been left out, the reader is told so: when
// retention has removed rows since, when too many have come, and when the book is another one than it was.
import type { Timer } from "../core/clock.ts";
import type { Store } from "../storage/store.ts";
import { isWhole } from "./fact-gap.ts";
import { openHorizon } from "./fact-horizon.ts";
import { positionText, type Position } from "./fact-position.ts";
import {
  countIn,
  factSources,
  marksFrom,
  markUpTo,
  numbersIn,
  stretchMax,
  type FactRow,
  type FactSource,
  type Mark,
} from "./fact-sources.ts";

/** `position` is what its reader gives to read on after it. */
export type LiveFact = { readonly topic: string; readonly position: string; readonly data: Record<string, unknown> };

export type FactFeed = {
  /** Tells what came after `position`, and from now on; without it only what comes. Resolves once the past is told, to the function
   *  that ends it. */
  follow(position: Position | undefined, reader: FactReader): Promise<() => void>;
  /** What a reader that has heard everything has read. */
  readonly position: string;
  readonly readers: number;
  close(): void;
};

export type FactReader = {
  readonly topics: ReadonlySet<string>;
  hear(fact: LiveFact): void;
  /** Something may be missing: the lists say what is. */
  lost(position: string): void;
  /** Resolves when it can hear more of the past: false once it has left. */
  ready(): Promise<boolean>;
};

/** One source as it was read. */
type Track = {
  readonly index: number;
  readonly source: FactSource;
  /** All up to here was looked at. */
  looked: number;
  /** Nothing appears up to here any more. */
  settled: number;
  /** What was told above `settled`. */
  readonly told: Set<number>;
  /** All that was told above it is in `kept`. */
  floor: number;
  /** The row with the number `looked`. */
  mark: Mark | undefined;
};

type Kept = {
  readonly order: number;
  readonly track: Track;
  readonly seq: number;
  readonly fact: LiveFact;
  /** The numbers of its position. */
  readonly reached: readonly number[];
};

const tickMs = 200;
const retryMs = 1000;
const rowsMax = 500;
/** A reader of the past is told so many at once. */
const pastMax = 100;
const keptMax = 5000;

export function openFactFeed(store: Store, tenant: string): FactFeed {
  const { waitClock: clock } = store;
  const horizon = openHorizon(store, clock);
  const readers = new Set<FactReader>();
  const tracks = factSources.map((source, index): Track => {
    return { index, source, looked: 0, settled: 0, told: new Set(), floor: 0, mark: undefined };
  });
  let kept: Kept[] = [];
  let order = 0;
  /** How often something was missed. */
  let lives = 0;
  let since = 0;
  let issued = 0;
  let joining = 0;
  let timer: Timer | undefined;
  let begun: Promise<void> | undefined;
  let closed = false;

  async function begin(): Promise<void> {
    since = store.clock.now();
    for (const track of tracks) await moveToHead(track);
    await horizon.begin();
    tickLater(tickMs);
  }

  async function moveToHead(track: Track): Promise<void> {
    const [head] = await store.read<Mark>(markUpTo(track.source, tenant, Number.MAX_SAFE_INTEGER));
    passTo(track, head ?? { seq: 0, at: 0 });
    track.settled = track.looked;
    track.floor = track.looked;
    track.told.clear();
  }

  /** SQLite commits one unit after the other, so that its numbers appear in their order. */
  function isInOrder({ source }: Track): boolean {
    return store.dialect === "sqlite" || source.inOrder;
  }

  function passTo(track: Track, { seq, at }: Mark): void {
    track.looked = seq;
    track.mark = seq === 0 ? undefined : { seq, at };
    issued = Math.max(issued, at, since);
    if (isInOrder(track)) track.settled = seq;
  }

  function settledNumbers(): number[] {
    return tracks.map(({ settled }) => settled);
  }

  function position(): string {
    return positionText({ numbers: settledNumbers(), since, issued, unsure: horizon.unsure });
  }

  function tickLater(ms: number): void {
    if (!closed) timer = clock.after(ms, () => void tick());
  }

  async function tick(): Promise<void> {
    try {
      const now = store.clock.now();
      let more = false;
      for (const track of tracks) more = (await look(track)) || more;
      if (!more) since = now;
      if (store.dialect === "postgres") await settle();
      tickLater(more ? 0 : tickMs);
    } catch {
      // The book cannot be read for a moment: nothing is lost by reading later.
      tickLater(retryMs);
    }
  }

  /** Tells what is new. True when there is more. */
  async function look(track: Track): Promise<boolean> {
    const { source } = track;
    if (store.dialect === "sqlite" && !(await isStillThere(source, track.mark))) {
      await moveToHead(track);
      missed();
      return false;
    }
    await lookBehind(track);
    const [next] = await store.read<Mark>(marksFrom(source, tenant, track.looked + 1));
    if (next === undefined) return false;
    const [end = next] = await store.read<Mark>(markUpTo(source, tenant, next.seq + stretchMax));
    const stretch = { after: track.looked, to: end.seq, limit: rowsMax };
    const rows = await store.read<FactRow>(source.read(tenant, stretch));
    for (const row of rows) {
      passTo(track, row);
      if (!isInOrder(track)) track.told.add(row.seq);
      tell(track, row);
    }
    if (rows.length === rowsMax) return true;
    passTo(track, end);
    return end.seq - next.seq > stretchMax / 2;
  }

  /** False once retention has removed the highest row: SQLite then gives its number again, to a row that would not look new. */
  async function isStillThere(source: FactSource, mark: Mark | undefined): Promise<boolean> {
    if (mark === undefined || source.evicted === null) return true;
    const [row] = await store.read<Mark>(marksFrom(source, tenant, mark.seq));
    return row?.seq === mark.seq && row.at === mark.at;
  }

  // Most looks find nothing late, so the rows are counted before their numbers are read.
  async function lookBehind(track: Track): Promise<void> {
    const { source, settled: after, looked: to, told } = track;
    if (to === after) return;
    const [found] = await store.read<{ count: number }>(countIn(source, tenant, { after, to }));
    if (Number(found?.count ?? 0) === told.size) return;
    for (const { seq } of await store.read<Mark>(numbersIn(source, tenant, { after, to, limit: to - after }))) {
      if (told.has(seq)) continue;
      for (const row of await store.read<FactRow>(source.read(tenant, { after: seq - 1, to: seq, limit: 1 }))) {
        told.add(seq);
        tell(track, row);
      }
    }
  }

  function tell(track: Track, row: FactRow): void {
    const { topic, tell: dataOf } = track.source;
    const fact = { topic, position: position(), data: dataOf(row) };
    kept.push({ order: order++, track, seq: row.seq, fact, reached: settledNumbers() });
    if (kept.length > keptMax * 2) {
      for (const { track: of, seq } of kept.slice(0, -keptMax)) of.floor = Math.max(of.floor, seq);
      kept = kept.slice(-keptMax);
    }
    for (const reader of readers) if (reader.topics.has(topic)) reader.hear(fact);
  }

  async function settle(): Promise<void> {
    const passed = await horizon.passed(tracks.map(({ looked }) => looked));
    for (const track of tracks) {
      track.settled = Math.max(track.settled, passed?.[track.index] ?? 0);
      for (const seq of track.told) if (seq <= track.settled) track.told.delete(seq);
    }
    if (horizon.becameSure()) missed();
  }

  /** Whoever listens, or comes back later, is not told all of what was kept. */
  function missed(): void {
    lives++;
    kept = [];
    for (const track of tracks) track.floor = track.looked;
    for (const reader of readers) reader.lost(position());
  }

  function wanted({ topics }: FactReader): Track[] {
    return tracks.filter(({ source }) => topics.has(source.topic));
  }

  /** Tells what is in the book between the position and what is kept here; false when the reader has left. */
  async function catchUp(from: Position, numbers: number[], reader: FactReader): Promise<boolean> {
    for (const track of wanted(reader)) {
      for (;;) {
        const after = numbers[track.index] ?? 0;
        if (after >= track.floor) break;
        const to = Math.min(track.floor, after + stretchMax);
        const rows = await store.read<FactRow>(track.source.read(tenant, { after, to, limit: pastMax }));
        for (const row of rows) {
          numbers[track.index] = row.seq;
          const text = positionText({ ...from, numbers, issued: Math.max(store.clock.now(), issued, row.at) });
          reader.hear({ topic: track.source.topic, position: text, data: track.source.tell(row) });
        }
        if (rows.length < pastMax) numbers[track.index] = to;
        if (!(await takesMore(reader))) return false;
      }
    }
    return true;
  }

  function isBehind(of: readonly Track[], numbers: readonly number[]): boolean {
    return of.some(({ floor, index }) => floor > (numbers[index] ?? 0));
  }

  /** Tells what is kept; what was told since the reader came may stand below its numbers. True when there is no more of it, so that
   *  the reader must hear from here on; false when so much came meanwhile that the rest is in the book alone. */
  async function replay(numbers: number[], cameAt: number, reader: FactReader): Promise<boolean> {
    const of = wanted(reader);
    let reached: readonly number[] = [];
    for (let next = 0; ;) {
      if (isBehind(of, numbers)) {
        for (const [index, number] of reached.entries()) numbers[index] = Math.max(numbers[index] ?? 0, number);
        if (isBehind(of, numbers)) return false;
      }
      const past = kept.filter(({ order: at, track, seq }) => {
        return at >= next && of.includes(track) && (seq > (numbers[track.index] ?? 0) || at >= cameAt);
      });
      for (const each of past.slice(0, pastMax)) {
        reader.hear(each.fact);
        next = each.order + 1;
        reached = each.reached;
      }
      if (past.length <= pastMax) return true;
      if (!(await takesMore(reader))) return true;
    }
  }

  async function takesMore(reader: FactReader): Promise<boolean> {
    await clock.nextTurn();
    return reader.ready();
  }

  async function join(from: Position, reader: FactReader): Promise<void> {
    const [cameAt, life] = [order, lives];
    const numbers = [...from.numbers];
    let isTold = await isWhole(store, tenant, from, wanted(reader));
    // From the end of the replay to `add` nothing is awaited, so that nothing is told in between.
    while (isTold) {
      if (!(await catchUp(from, numbers, reader))) return;
      isTold = life === lives;
      if (isTold && (await replay(numbers, cameAt, reader))) break;
    }
    readers.add(reader);
    if (!isTold || life !== lives) reader.lost(position());
  }

  return {
    get position() {
      return position();
    },
    get readers() {
      return readers.size + joining;
    },
    async follow(from, reader) {
      joining++;
      try {
        await (begun ??= begin());
        if (from === undefined) readers.add(reader);
        else await join(from, reader);
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
