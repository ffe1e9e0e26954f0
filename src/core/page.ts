// Pages of a list: how many items, and where the next page begins.
import { checkCount } from "./count.ts";
import { invalid, type DaybookError } from "./error.ts";
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
  // Only what a page gave: Number reads "" as 0, which would answer with an empty page.
  if (from !== null && (!Number.isSafeInteger(from) || String(from) !== after)) throw notACursor(after);
  return { limit: checkLimit(limit), after: from };
}

export function notACursor(given: unknown): DaybookError {
  return invalid(`${quote(given)} is not a cursor: give "next" of the page before`);
}

/** A cursor that is made of several values. */
export function writeCursor(values: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString("base64url");
}

/** The values of such a cursor; the caller checks their types. */
export function readCursor(text: unknown): readonly unknown[] {
  try {
    const values: unknown = JSON.parse(Buffer.from(String(text), "base64url").toString());
    return Array.isArray(values) ? values : [];
  } catch {
    throw notACursor(text);
  }
}

/** The first `limit` of `limit + 1` rows as a page; `more` says whether others follow. */
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
