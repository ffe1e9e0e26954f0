// PostgreSQL gives out numbers before the commit, so a row may appear below one that was read. This says up to which numbers nothing
// can appear any more: once all transactions have ended that were under way after these numbers were seen.
import type { Clock } from "../core/clock.ts";
import { limits } from "../core/limits.ts";
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";

export type Horizon = {
  /** Waits for the transactions that are under way, though not for long. */
  begin(): Promise<void>;
  /** Told the highest number of each source that was read. Returns those below which nothing appears any more, if there are new ones. */
  passed(looked: readonly number[]): Promise<readonly number[] | undefined>;
  /** Numbers are passed that a transaction may yet commit something below. */
  readonly unsure: boolean;
  /** True once, when that transaction has ended. */
  becameSure(): boolean;
};

type Waiting = { readonly looked: readonly number[]; readonly beyond: number; readonly sinceMs: number };

const beginWaitMs = 2000;
const beginLookMs = 20;
/** What is counted again and again, to find what came late, is no more than this. */
const lateMax = 100_000;

export function openHorizon(store: Store, clock: Clock): Horizon {
  let waiting: Waiting | undefined;
  /** What was read before the last look, so that whoever had drawn a number by then and done nothing else is seen as well. */
  let before: readonly number[] | undefined;
  let sureBeyond: number | undefined;
  let became = false;

  async function underWay(): Promise<{ readonly oldest: number; readonly next: number }> {
    const [snapshot] = await store.read<{ oldest: string; next: string }>(
      sql`select pg_snapshot_xmin(pg_current_snapshot())::text as oldest, pg_snapshot_xmax(pg_current_snapshot())::text as next`,
    );
    return { oldest: Number(snapshot?.oldest ?? 0), next: Number(snapshot?.next ?? 0) };
  }

  return {
    async begin() {
      if (store.dialect === "sqlite") return;
      const beganMs = clock.monotonic();
      const { next } = await underWay();
      while ((await underWay()).oldest < next) {
        if (clock.monotonic() - beganMs > beginWaitMs) return void (sureBeyond = next);
        await clock.sleep(beginLookMs);
      }
    },
    async passed(looked) {
      const { oldest, next } = await underWay();
      const nowMs = clock.monotonic();
      if (sureBeyond !== undefined && oldest >= sureBeyond) [sureBeyond, became] = [undefined, true];
      let done: readonly number[] | undefined;
      if (waiting !== undefined && oldest >= waiting.beyond) {
        done = waiting.looked;
        waiting = undefined;
      } else if (waiting !== undefined) {
        const behind = Math.max(...looked.map((number, index) => number - (waiting?.looked[index] ?? 0)));
        if (nowMs - waiting.sinceMs > limits.liveGapMs || behind > lateMax) {
          done = looked;
          sureBeyond = next;
          waiting = undefined;
        }
      }
      if (waiting === undefined && before !== undefined) waiting = { looked: before, beyond: next, sinceMs: nowMs };
      before = looked;
      return done;
    },
    get unsure() {
      return sureBeyond !== undefined;
    },
    becameSure() {
      const was = became;
      became = false;
      return was;
    },
  };
}
