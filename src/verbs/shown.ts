// How a person reads an answer, without a word about where: a way in puts it on its paper (render.ts).

/** What stands in a table or beside a name. Nothing of it can command a terminal. */
export type Cell =
  | string
  | number
  | null
  | { readonly kind: "time"; readonly ms: number | null }
  | { readonly kind: "ago"; readonly ms: number | null }
  | { readonly kind: "id"; readonly text: string | null }
  | { readonly kind: "words"; readonly words: readonly Cell[] }
  | { readonly kind: "status"; readonly text: string; readonly more: string };

export type Part =
  | {
      readonly kind: "table";
      readonly head: readonly string[];
      readonly rows: readonly (readonly Cell[])[];
      readonly none: string;
      readonly least: readonly string[];
    }
  | { readonly kind: "fields"; readonly fields: readonly (readonly [name: string, value: Cell])[] }
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "lines"; readonly text: string }
  | { readonly kind: "sentence"; readonly cell: Cell }
  | { readonly kind: "row"; readonly cells: readonly Cell[] }
  | { readonly kind: "section"; readonly title: string; readonly parts: readonly Part[] };

/** A text is one line. Parts stand one under the other. */
export type Shown = string | Part | readonly (string | Part)[];

export function partsOf(shown: Shown): readonly (string | Part)[] {
  return typeof shown === "string" || "kind" in shown ? [shown] : shown;
}

/** A moment: in the reader's zone, with its distance where there is room for it. */
export function when(ms: number | null): Cell {
  return { kind: "time", ms };
}

/** How far a moment is from now; programs are told the moment itself. */
export function ago(ms: number | null): Cell {
  return { kind: "ago", ms };
}

/** Words and cells in a row: `words("it may start", when(ms))`. */
export function words(...given: readonly Cell[]): Cell {
  return { kind: "words", words: given };
}

/** Something that is copied, so it is never cut. */
export function copied(text: string | null): Cell {
  return { kind: "id", text };
}

/** A state, in its colour; `more` follows it. */
export function state(text: string, more = ""): Cell {
  return { kind: "status", text, more };
}

export type Columns<Row> = { readonly [name: string]: (row: Row) => Cell };

/** One line for each row. `none` is said when there are no rows; the columns of `least` give way on a narrow paper. */
export function table<Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  { none = "There is nothing to list.", least = [] as readonly string[] } = {},
): Part {
  const make = Object.values(columns);
  return {
    kind: "table",
    head: Object.keys(columns),
    rows: rows.map((row) => make.map((cell) => cell(row))),
    none,
    least,
  };
}

/** Names and values; what is null is left out. */
export function fields(given: { readonly [name: string]: Cell }): Part {
  return { kind: "fields", fields: Object.entries(given).filter(([, value]) => !isEmpty(value)) };
}

function isEmpty(cell: Cell): boolean {
  if (typeof cell !== "object" || cell === null) return cell === null;
  if (cell.kind === "time" || cell.kind === "ago") return cell.ms === null;
  return cell.kind === "id" && cell.text === null;
}

/** A value of the book or of its user, as JSON. */
export function asJson(value: unknown): Part {
  return { kind: "json", value };
}

/** Text of several lines, such as a trace. */
export function lines(text: string): Part {
  return { kind: "lines", text };
}

/** A line of words and cells: `sentence("it may start", ago(ms))`. */
export function sentence(...given: readonly Cell[]): Part {
  return { kind: "sentence", cell: words(...given) };
}

/** One item of a stream, on one line that fits. */
export function row(...cells: readonly Cell[]): Part {
  return { kind: "row", cells };
}

export function section(title: string, ...parts: readonly Part[]): Part {
  return { kind: "section", title, parts };
}

/** Right grammar: "1 job", "2 jobs". */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function bytes(size: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10));
  return `${(size / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
