// A list that is read page by page: the first page stays up to date, further ones are read when they are asked for.
import { useState } from "preact/hooks";
import type { VerbAnswer, VerbInput, VerbKey } from "../../client/verbs.ts";
import type { DaybookError } from "../../core/daybook-error.ts";
import { tell } from "./toast.ts";
import { ask, tenant } from "./book.ts";
import { asError, useVerb, type Watch } from "./use-verb.ts";

type ListKey = {
  [Key in VerbKey]: VerbAnswer<Key> extends { readonly items: readonly unknown[]; readonly next?: string | null }
    ? Key
    : never;
}[VerbKey];

type Row<Key extends ListKey> = VerbAnswer<Key> extends { readonly items: readonly (infer Item)[] } ? Item : never;

export type Listed<Item> = {
  readonly rows: readonly Item[];
  readonly error: DaybookError | undefined;
  readonly isReading: boolean;
  /** Whether anything was read yet. */
  readonly isKnown: boolean;
  readonly onMore: (() => void) | undefined;
  again(): void;
  read(): Promise<void>;
};

type Page = { readonly items: readonly unknown[]; readonly next?: string | null };
type Further = { readonly of: string; readonly rows: readonly unknown[]; readonly next: string | null };

export function useList<Key extends ListKey>(verb: Key, input: VerbInput<Key>, watch: Watch = {}): Listed<Row<Key>> {
  const first = useVerb(verb, input, watch);
  const key = JSON.stringify([verb, input, tenant.value]);
  const [further, setFurther] = useState<Further>({ of: key, rows: [], next: null });
  const [isReadingMore, setReadingMore] = useState(false);
  const mine = further.of === key ? further : { of: key, rows: [], next: null };
  const page = first.data as Page | undefined;
  const next = mine.rows.length > 0 ? mine.next : (page?.next ?? null);

  async function more(): Promise<void> {
    if (next === null || isReadingMore) return;
    setReadingMore(true);
    try {
      const read = (await ask(verb, { ...input, after: next } as VerbInput<Key>)) as Page;
      setFurther({ of: key, rows: [...mine.rows, ...read.items], next: read.next ?? null });
    } catch (error) {
      tell(asError(error).message, { kind: "bad" });
    } finally {
      setReadingMore(false);
    }
  }

  return {
    rows: [...(page?.items ?? []), ...mine.rows] as readonly Row<Key>[],
    error: first.error,
    isReading: first.isReading || isReadingMore,
    isKnown: page !== undefined,
    onMore: next === null ? undefined : () => void more(),
    again: first.again,
    read: first.read,
  };
}
