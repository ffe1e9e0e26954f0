// Hears every event that any process publishes from now on, once. The commits of this process arrive directly. When another
// process publishes, the book wakes this one, which reads the new rows by their numbers.
//
// PostgreSQL gives out numbers before the commit, so a lower number may appear later. A number that was passed over is kept as
// a gap and asked for again, because its commit wakes this process too. One that was rolled back stays a gap until it is too old.
import type { Timer } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { anyOf } from "../../storage/word.ts";
import { eventsChannel, type EventRow } from "../event.ts";
import { localFeed } from "../listener-index.ts";

type Head = Pick<EventRow, "seq" | "tenant_id" | "topic" | "replay_of">;

export type Follower = {
  /** Asked before an event is read whole. */
  wants(tenant: string, topic: string): boolean;
  hear(event: EventRow): void;
};

const headsMax = 200;
const retryMs = 1000;

export async function followPublished(store: Store, follower: Follower): Promise<{ stop(): void }> {
  // Commits of other processes are waited for in real time.
  const { waitClock: clock } = store;
  const gaps = new Map<number, number>();
  /** Events that are being read from the book. */
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
    // PostgreSQL may wake us for our own commit before the commit returns. Hear it here, so the publisher need not wait.
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
      // The book cannot be read for a moment. What was not read is still a gap, or comes after `last`.
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
      // Gaps are in the order in which they were found.
      if (sinceMs > oldMs && gaps.size <= limits.liveGapsMax) return;
      gaps.delete(seq);
    }
  }

  // A transaction that began before this and commits after it is heard too: it may own one of the latest missing numbers.
  async function begin(): Promise<void> {
    const heads = await store.read<Head>(sql`select seq, tenant_id, topic, replay_of from daybook_event
      order by seq desc limit ${limits.liveGapsMax}`);
    last = (heads.at(-1)?.seq ?? 1) - 1;
    for (const head of heads.toReversed()) isNew(head);
  }

  await begin();
  const { published } = localFeed(store);
  published.add(hearOwn);
  const stopListening = store.onWake((channel) => {
    // SQLite names a channel for our own commits only, and those have arrived already.
    if (channel === null || (channel === eventsChannel && store.dialect === "postgres")) void look();
  });
  // Events published since `begin` read the numbers.
  await look();
  return {
    stop() {
      stopped = true;
      timer?.cancel();
      published.delete(hearOwn);
      stopListening();
    },
  };
}
