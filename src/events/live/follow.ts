// Hears every event that is published from now on, by this process or another, once. Its own commits are told at once.
// For those of others, the book says that something was published, and the new rows are read by their numbers.
//
// On PostgreSQL numbers are given before the commit, so a lower one may appear later. A number that was passed over is
// kept as a gap and asked for again: its commit wakes us too. One that was rolled back stays a gap until it is too old.
import type { Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { eventsChannel, type EventRow } from "../event.ts";
import { onPublished } from "./ears.ts";

type Head = Pick<EventRow, "seq" | "tenant_id" | "topic" | "replay_of">;

export type Follower = {
  /** Asked before an event is read whole. */
  wants(tenant: string, topic: string): boolean;
  hear(event: EventRow): void;
};

const headsMax = 200;
const retryMs = 1000;

export async function followPublished(store: Store, follower: Follower): Promise<{ stop(): void }> {
  // Commits of others are waited for, in real time.
  const { waitClock: clock } = store;
  const gaps = new Map<number, number>();
  /** Found by their numbers, and on their way here. */
  const reading = new Set<number>();
  let last = 0;
  let looking = false;
  let again = false;
  let stopped = false;
  let timer: Timer | undefined;

  /** False when it was heard before. */
  function isNew({ seq }: Pick<Head, "seq">): boolean {
    if (seq <= last) return gaps.delete(seq);
    const nowMs = clock.monotonic();
    for (let missing = Math.max(last + 1, seq - limits.liveGapsMax); missing < seq; missing++) gaps.set(missing, nowMs);
    last = seq;
    return true;
  }

  function hearOwn(event: EventRow): void {
    // PostgreSQL may tell of our own commit before the commit itself comes back; whoever published must not wait for that.
    if (reading.delete(event.seq) || isNew(event)) follower.hear(event);
  }

  async function look(): Promise<void> {
    again = true;
    if (looking) return;
    looking = true;
    try {
      while (again && !stopped) {
        again = false;
        forgetOldGaps();
        const heads = await readHeads();
        const wanted = heads.filter(
          (head) => isNew(head) && head.replay_of === null && follower.wants(head.tenant_id, head.topic),
        );
        if (wanted.length > 0) await hearAll(wanted.map(({ seq }) => seq));
        if (heads.length === headsMax) again = true;
      }
    } catch {
      // The book cannot be read for a moment. What is missing is still marked as missing, or not yet passed.
      timer ??= clock.after(retryMs, () => {
        timer = undefined;
        void look();
      });
    } finally {
      looking = false;
    }
  }

  async function readHeads(): Promise<Head[]> {
    return store.read<Head>(sql`select seq, tenant_id, topic, replay_of from daybook_event
      where seq > ${last} or seq ${anyOf("integer", [...gaps.keys()])} order by seq limit ${headsMax}`);
  }

  async function hearAll(seqs: readonly number[]): Promise<void> {
    for (const seq of seqs) reading.add(seq);
    try {
      const wanted = sql`select * from daybook_event where seq ${anyOf("integer", seqs)} order by seq`;
      for (const row of await store.read<EventRow>(wanted)) {
        if (reading.delete(row.seq) && !stopped) follower.hear(row);
      }
    } catch (error) {
      for (const seq of reading) gaps.set(seq, clock.monotonic());
      throw error;
    } finally {
      reading.clear();
    }
  }

  function forgetOldGaps(): void {
    const oldMs = clock.monotonic() - limits.liveGapMs;
    for (const [seq, sinceMs] of gaps) {
      // They are in the order in which they were found.
      if (sinceMs > oldMs && gaps.size <= limits.liveGapsMax) return;
      gaps.delete(seq);
    }
  }

  // What was begun before us and commits after us is heard too: the latest numbers that are missing may be such.
  async function begin(): Promise<void> {
    const heads = await store.read<Head>(sql`select seq, tenant_id, topic, replay_of from daybook_event
      order by seq desc limit ${limits.liveGapsMax}`);
    last = (heads.at(-1)?.seq ?? 1) - 1;
    for (const head of heads.toReversed()) isNew(head);
  }

  await begin();
  const forget = onPublished(store.ids, hearOwn);
  const stopListening = store.onWake((channel) => {
    // On SQLite a channel is named for our own commits only, and those are told already.
    if (channel === null || (channel === eventsChannel && store.dialect === "postgres")) void look();
  });
  // What was published since the numbers were read.
  await look();
  return {
    stop() {
      stopped = true;
      timer?.cancel();
      forget();
      stopListening();
    },
  };
}
