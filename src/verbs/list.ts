// Verbs that list, all at once or a page at a time. Where a page ended is told by a cursor: opaque, checked, and of use only to the
// tenant and the question that it was made for. Inside is the cursor of the library.
import { createHash } from "node:crypto";
import type { Book } from "../book/book.ts";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { quote } from "../core/quote.ts";
import type { Fields, Given } from "./field.ts";
import { page } from "./shared-fields.ts";
import { table, type Columns } from "./shown.ts";
import { read, type Said, type Verb } from "./verb.ts";

type Page<Row> = { readonly items: readonly Row[]; readonly next: string | null };

type Listing<F extends Fields, Asked, Found, Row> = Omit<Said<F, never>, "run" | "show" | "check" | "definitionsOf"> & {
  check?(input: Asked): void;
  find(book: Book, input: Asked): Promise<Found>;
  readonly columns: Columns<Row>;
  /** What a person is told when there are no rows, and the columns that give way on a narrow paper. */
  readonly none: string;
  readonly least?: readonly string[];
};

/** Lists all that `find` gives. */
export function listed<const F extends Fields, Row>({
  find,
  columns,
  none,
  least = [],
  ...said
}: Listing<F, Given<F>, readonly Row[], Row>): Verb<F, Promise<{ readonly items: readonly Row[] }>> {
  return read<F, Promise<{ readonly items: readonly Row[] }>>({
    ...said,
    run: async (book, input) => ({ items: await find(book, input) }),
    show: ({ items }) => table(items, columns, { none, least }),
  });
}

type Asked = { readonly limit?: number; readonly after?: string };

/** Lists a page of what `find` gives, which is asked with the cursor of the library. */
export function paged<const F extends Fields, Row>({
  find,
  columns,
  none,
  least = [],
  ...said
}: Listing<F, Given<F & typeof page>, Page<Row>, Row>): Verb<F & typeof page, Promise<Page<Row>>> {
  return read<F & typeof page, Promise<Page<Row>>>({
    ...said,
    input: { ...said.input, ...page },
    run: (book, input) => pageOf(book, said.words, input, (asked) => find(book, asked)),
    show: ({ items }) => table(items, columns, { none, least }),
  });
}

/** Asks for a page: `ask` gets the input with the library's own cursor. `of` names the list. */
export async function pageOf<Input extends Asked, Row>(
  book: Book,
  of: string,
  input: Input,
  ask: (input: Input) => Promise<Page<Row>>,
): Promise<Page<Row>> {
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
