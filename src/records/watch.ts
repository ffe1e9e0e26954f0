// A live query: the records that come to match it, change while they match, or cease to match, commit by commit. The number of
// the last commit it saw tells where to continue, in another process or after a restart.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import { follow, type AnyRecordType } from "./define/definition.ts";
import type { EntryOf, ValueOf } from "./entry.ts";
import { readSince, type ChangeRecord } from "./changes.ts";
import { readHead } from "./commit.ts";
import { evaluate, leavesOf, type Condition, type Place, type Side } from "./query/condition.ts";
import type { Question } from "./query/read-query.ts";
import { storeReader } from "./record-reader.ts";
import { recordsChannel } from "./write/flush.ts";

export type WatchOptions = {
  /** Continues after this commit; default: from now on. */
  readonly after?: number;
  /** Ends the watch. */
  readonly signal?: AbortSignal;
};

export type WatchedChange<Type> = {
  /** `added`: it matches now; `changed`: it still does; `removed`: it no longer does. */
  readonly kind: "added" | "changed" | "removed";
  readonly key: EntryOf<Type>["key"];
  readonly revision: number;
  /** Null when it was deleted. */
  readonly value: ValueOf<Type> | null;
};

export type WatchedCommit<Type> = {
  readonly commit: number;
  readonly at: number;
  readonly changes: readonly WatchedChange<Type>[];
};

/** What ends each watch of the store. */
function watchesOf(store: Store): Set<() => void> {
  return store.keep("record watches", () => new Set());
}

/** Ends all watches of a store that is being closed. */
export function endWatching(store: Store): void {
  for (const end of watchesOf(store)) end();
}

export async function* watchQuery<Type extends AnyRecordType>(
  store: Store,
  tenant: string,
  question: Question,
  options: WatchOptions,
): AsyncGenerator<WatchedCommit<Type>, void, undefined> {
  refuseUnknown(options, ["after", "signal"], "watch");
  const where: Condition = { op: "and", of: question.where };
  checkWatchable(question, where);
  const { signal } = options;
  const only = question.type === undefined ? {} : { type: question.type };
  const reader = storeReader(store, tenant);
  let over = signal?.aborted === true;
  let wake = (): void => undefined;
  const end = (): void => {
    over = true;
    wake();
  };
  const stop = store.onWake((channel) => void ((channel === recordsChannel || channel === null) && wake()));
  const watches = watchesOf(store).add(end);
  signal?.addEventListener("abort", end, { once: true });
  try {
    let seen = options.after ?? (await readHead(reader)).commit ?? 0;
    while (!over) {
      // Made before the read, so that no commit falls in between.
      const news = new Promise<void>((resolve) => (wake = resolve));
      if (over) return;
      const page = await readSince<ValueOf<Type>>(reader, seen, { limit: limits.pageMax, ...only });
      for (const [commit, changes] of Map.groupBy(page.items, (change) => change.commit)) {
        const matching = changes.flatMap((change) => toWatched<Type>(where, change));
        if (matching.length > 0 && !over) yield { commit, at: changes[0]?.at ?? 0, changes: matching };
        seen = commit;
      }
      seen = page.commit;
      if (!page.more && !over) await news;
    }
  } catch (error) {
    // The book was closed during a read, which ended the watch first.
    if (!over) throw error;
  } finally {
    stop();
    watches.delete(end);
    signal?.removeEventListener("abort", end);
  }
}

function toWatched<Type>(where: Condition, change: ChangeRecord<ValueOf<Type>>): WatchedChange<Type>[] {
  const [was, is] = [change.before, change.value].map(
    (value) => value !== null && evaluate(where, (place) => valueAt(change, value, place)),
  );
  if (was !== true && is !== true) return [];
  const kind = was !== true ? "added" : is === true ? "changed" : "removed";
  return [{ kind, key: change.key as EntryOf<Type>["key"], revision: change.revision, value: change.value }];
}

function valueAt({ key }: ChangeRecord, value: unknown, { side, path }: Place): unknown {
  if (side === "value") return follow(value, path);
  if (typeof key === "string") return key;
  const keys: Partial<Record<Side, string>> = { fromKey: key.from, toKey: key.to, instanceKey: key.instance ?? "" };
  return keys[side];
}

function checkWatchable({ asOf, orders, after, limit, offset, search, with: along }: Question, where: Condition): void {
  if (orders.length > 0 || [asOf, after, limit, offset, search, along].some((given) => given !== undefined)) {
    throw invalid("a watch is about what happens: leave out asOf, orderBy, limit, offset, after, search and with");
  }
  if (leavesOf(where).some(({ at, op }) => at.side === "from" || at.side === "to" || op === "related")) {
    throw invalid("a watch looks at changed records alone, not at what they are connected with: watch that, too");
  }
}
