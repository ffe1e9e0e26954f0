// Pages of a list: how many, and where to go on.
import { checkCount } from "./count.ts";
import { type DaybookError, invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

export type PageOptions = {
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
};

export type Page<Item> = { readonly items: readonly Item[]; readonly next: string | null };

export function checkLimit(limit: number = limits.pageDefault): number {
  return checkCount(limit, "limit", 1, limits.pageMax);
}

export function checkPage({ limit, after }: PageOptions): { limit: number; after: number | null } {
  const from = after === undefined ? null : Number(after);
  if (from !== null && !Number.isSafeInteger(from)) throw notACursor(after);
  return { limit: checkLimit(limit), after: from };
}

export function notACursor(given: unknown): DaybookError {
  return invalid(`${quote(given)} is not a cursor: give "next" of the page before`);
}

/** The first `limit` of rows of which one more was read; `more` when the others did not fit. */
export function cutPage<Row, Item = Row>(
  rows: readonly Row[],
  limit: number,
  cursorOf: (row: Row) => number | string,
  toItem: (row: Row) => Item = (row) => row as unknown as Item,
  more = rows.length > limit,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { items: shown.map(toItem), next: more && last !== undefined ? String(cursorOf(last)) : null };
}
