// Whether a reader that comes back with a position can be told all that it missed, or must be told that something is gone.
import { sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import type { Position } from "./fact-position.ts";
import { countIn, marksFrom, stretchMax, type FactSource, type Mark } from "./fact-sources.ts";

/** A source that the reader hears, and up to which number it was looked at. */
type Looked = { readonly index: number; readonly source: FactSource; readonly looked: number };

/** A reader that is further behind than this reads the lists again: that is less than all that happened. */
const behindMax = 20_000;
/** Clocks of several machines, and the length of transactions, for what retention has removed. */
const aboutMs = 600_000;
const longRunMs = 3_600_000;

/** Whether all that came after a position is in the book, is that of this book, and is not too much. */
export async function isWhole(store: Store, tenant: string, from: Position, of: readonly Looked[]): Promise<boolean> {
  if (from.unsure) return false;
  let behind = 0;
  for (const { source, index, looked } of of) {
    const number = from.numbers[index] ?? 0;
    const [mark] = number === 0 ? [] : await store.read<Mark>(marksFrom(source, tenant, number));
    if (number > looked && mark === undefined) return false;
    const isOther = mark === undefined ? number > 0 : mark.at > from.issued;
    if (isOther && store.dialect === "sqlite" && source.evicted !== null) return false;
    if (mark?.seq === number && isOther) return false;
    for (let after = number; after < looked && behind <= behindMax; after += stretchMax) {
      const to = Math.min(after + stretchMax, looked);
      const [found] = await store.read<{ count: number }>(countIn(source, tenant, { after, to }));
      behind += Number(found?.count ?? 0);
      await store.waitClock.nextTurn();
    }
  }
  return behind <= behindMax && !(await isEvicted(store, tenant, from, of));
}

/** What was removed since is known by when it was made; a run by when it began, and it may have been long. */
async function isEvicted(
  store: Store,
  tenant: string,
  { since: from }: Position,
  of: readonly Looked[],
): Promise<boolean> {
  const whats = of.flatMap(({ source }) => source.evicted ?? []);
  const isLong = store.clock.now() - from > longRunMs;
  const madeSince = sql`until_at >= ${from - aboutMs} ${isLong ? sql`or what = 'run'` : sql``}`;
  const [gone] = await store.read(sql`select 1 as gone from daybook_eviction where tenant_id = ${tenant}
    and what ${anyOf("text", whats)} and removed_at >= ${from} and (${madeSince}) limit 1`);
  return gone !== undefined;
}
