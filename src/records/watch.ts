// A live query: what comes to match it, changes while it does, or ceases to, commit by commit. It goes on where it was left
// by the number of the last commit that was seen, also in another process and after a restart.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import type { EntryOf, ValueOf } from "./entry.ts";
import { readSince, type ChangeRecord } from "./feed.ts";
import { recordsChannel } from "./write/flush.ts";
import { readHead } from "./moment.ts";
import { type Condition, type Place, evaluate, follow } from "./query/condition.ts";
import type { Question } from "./query/read-query.ts";
import { storeReader } from "./record-reader.ts";
import type { AnyRecordType } from "./define/definition.ts";

export type WatchOptions = {
  /** Goes on after this commit; default: from now on. */
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
      // Asked for before the look, so that no commit falls in between.
      const news = new Promise<void>((resolve) => (wake = resolve));
      if (over) return;
      const page = await readSince<ValueOf<Type>>(reader, seen, { limit: limits.pageMax, ...typeOf(question) });
      for (const [commit, changes] of Map.groupBy(page.items, (change) => change.commit)) {
        const matching = changes.flatMap((change) => toWatched<Type>(where, change));
        if (matching.length > 0 && !over) yield { commit, at: changes[0]?.at ?? 0, changes: matching };
        seen = commit;
      }
      seen = page.commit;
      if (!page.more && !over) await news;
    }
  } catch (error) {
    // What it was about to read when its book was closed is refused: it had ended before.
    if (!over) throw error;
  } finally {
    stop();
    watches.delete(end);
    signal?.removeEventListener("abort", end);
  }
}

function typeOf({ type }: Question): { type?: AnyRecordType } {
  return type === undefined ? {} : { type };
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
  return {
    fromKey: key.from,
    toKey: key.to,
    instanceKey: key.instance ?? "",
    key: undefined,
    from: undefined,
    to: undefined,
  }[side];
}

function checkWatchable(question: Question, condition: Condition): void {
  if (
    question.asOf !== undefined ||
    question.orders.length > 0 ||
    question.after !== undefined ||
    question.limit !== undefined ||
    question.offset !== undefined ||
    question.search !== undefined
  ) {
    throw invalid("a watch is about what happens: leave out asOf, orderBy, limit, offset, after and search");
  }
  if (condition.op === "and" || condition.op === "or") condition.of.forEach((each) => checkWatchable(question, each));
  else if (condition.op === "not") checkWatchable(question, condition.of);
  else if (condition.at.side === "from" || condition.at.side === "to") {
    throw invalid("a watch looks at changed records alone, not at their endpoints: watch those, too");
  }
}
