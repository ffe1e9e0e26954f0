// Where a page of a list ended, as a caller sees it: opaque, checked, and of use only to the tenant and the question that it was
// made for. Inside is the cursor of the library.
import { createHash } from "node:crypto";
import type { Book } from "../book/book.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { quote } from "../core/quote.ts";

type Asked = { readonly limit?: number; readonly after?: string };
type Page<Item> = { readonly items: readonly Item[]; readonly next: string | null };

/** Asks for a page: `ask` gets the input with the library's own cursor. `of` names the list. */
export async function paged<Input extends Asked, Item>(
  book: Book,
  of: string,
  input: Input,
  ask: (input: Input) => Promise<Page<Item>>,
): Promise<{ readonly items: readonly Item[]; readonly next: string | null }> {
  const { limit: _limit, after, ...question } = input;
  const about = toJson([book.tenantId, of, question]);
  const { items, next } = await ask(after === undefined ? input : { ...input, after: openCursor(after, about) });
  return { items, next: next === null ? null : sealCursor(next, about) };
}

function sealCursor(inner: string, about: string): string {
  return Buffer.from(`${marks(inner, about)}${inner}`).toString("base64url");
}

// Two marks: one tells a slip of the hand from a cursor, the other one question from another.
function marks(inner: string, about: string): string {
  return `${mark(inner)}${mark(`${inner} ${about}`)}`;
}

const markLength = 8;

function mark(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, markLength);
}

function openCursor(given: string, about: string): string {
  const text = Buffer.from(given, "base64url").toString();
  const inner = text.slice(2 * markLength);
  // Only the text that was written is read: the same bytes can be spelt in several ways.
  if (inner === "" || mark(inner) !== text.slice(0, markLength) || Buffer.from(text).toString("base64url") !== given) {
    throw invalid(`${quote(given)} is not a cursor: give "next" of the page before`);
  }
  if (text.slice(markLength, 2 * markLength) === mark(`${inner} ${about}`)) return inner;
  throw invalid("the cursor belongs to another list: begin again without it, or ask as for the page before");
}
