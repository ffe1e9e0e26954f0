// What is shown, as text: fitted to a terminal, or plain and separated by tabs for whatever reads a pipe.
import { styleText } from "node:util";
import { formatDuration } from "../core/duration.ts";
import { plainJson, plainLine, plainLines } from "./plain.ts";
import { partsOf, type Cell, type Part, type Shown } from "./shown.ts";
import { cutTo, widthOf } from "./width.ts";

export type Paper = {
  /** How many columns a terminal has; null for a pipe or a file. */
  readonly width: number | null;
  readonly colour: boolean;
  /** The reader's zone: `Europe/Madrid`, `UTC`. */
  readonly zone: string;
  readonly now: number;
};

export function render(shown: Shown, paper: Paper): string {
  const texts = partsOf(shown).map((part): [text: string, apart: boolean] =>
    typeof part === "string" ? [plainLine(part), false] : [renderPart(part, paper), part.kind === "section"],
  );
  // A section stands apart from what is above it.
  return texts.map(([text, apart], index) => (apart && index > 0 ? `\n${text}` : text)).join("\n");
}

function renderPart(part: Part, paper: Paper): string {
  switch (part.kind) {
    case "table":
      return renderTable(part, paper);
    case "fields":
      return renderFields(part.fields, paper);
    case "json":
      return plainJson(part.value, 2);
    case "lines":
      return plainLines(part.text);
    case "sentence":
      return cellText(part.cell, paper, paper.width === null ? "whole" : "long");
    case "row":
      return renderRow(part.cells, paper);
    case "section":
      return [bold(plainLine(part.title), paper), ...part.parts.map((each) => renderPart(each, paper))].join("\n");
  }
}

type Table = Extract<Part, { kind: "table" }>;

function renderTable({ head, rows, none, least }: Table, paper: Paper): string {
  const { width } = paper;
  if (width === null) {
    const cells = rows.map((row) => row.map((cell) => cellText(cell, paper, "whole")));
    return [head, ...cells].map((row) => row.join("\t")).join("\n");
  }
  if (rows.length === 0) return none;
  const columns = head.map((name, index) => ({ name, cells: rows.map((row) => row[index] ?? null) }));
  return fit(columns, { least, width, paper });
}

type Column = { readonly name: string; readonly cells: readonly Cell[] };
type Fitting = { readonly least: readonly string[]; readonly width: number; readonly paper: Paper };

const gap = 2;
/** A text that is cut below this says nothing. */
const textMin = 10;

// First times become short, then texts are cut, the longest first, then the columns that matter least are left out.
function fit(columns: readonly Column[], fitting: Fitting): string {
  const { least, width, paper } = fitting;
  const [gives, ...others] = least;
  for (const form of ["exact", "short"] as const) {
    const texts = columns.map(({ name, cells }) => [name, ...cells.map((each) => cellText(each, paper, form))]);
    const wide = texts.map((column) => Math.max(...column.map(widthOf)));
    const narrow = texts.map((column, index) => {
      const isText = columns[index]?.cells.some((each) => typeof each === "string" || isWords(each));
      return isText === true
        ? Math.min(wide[index] ?? 0, Math.max(textMin, widthOf(column[0] ?? "")))
        : (wide[index] ?? 0);
    });
    const room = width - gap * (columns.length - 1);
    const fits = sum(form === "short" ? narrow : wide) <= room;
    if (fits || (form === "short" && gives === undefined)) {
      return drawn(texts, shrink(wide, narrow, room), { paper, columns });
    }
  }
  return fit(
    columns.filter(({ name }) => name !== gives),
    { ...fitting, least: others },
  );
}

function isWords(cell: Cell): boolean {
  return typeof cell === "object" && cell?.kind === "words";
}

/** Takes from the widest that can give, until all fit. */
function shrink(wide: readonly number[], narrow: readonly number[], room: number): number[] {
  const widths = [...wide];
  while (sum(widths) > room) {
    const widest = widths.reduce(
      (best, each, index) =>
        each > (narrow[index] ?? 0) && (best === -1 || each > (widths[best] ?? 0)) ? index : best,
      -1,
    );
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

type Drawing = { readonly paper: Paper; readonly columns: readonly Column[] };

function drawn(texts: readonly (readonly string[])[], widths: readonly number[], { paper, columns }: Drawing): string {
  const lines = (texts[0] ?? []).map((_, row) =>
    texts
      .map((column, index) => {
        const width = widths[index] ?? 0;
        const text = cutTo(column[row] ?? "", width);
        const padded = text + " ".repeat(Math.max(0, width - widthOf(text)));
        return row === 0 ? bold(padded, paper) : coloured(padded, columns[index]?.cells[row - 1] ?? null, paper);
      })
      .join(" ".repeat(gap))
      .trimEnd(),
  );
  return lines.join("\n");
}

function renderRow(cells: readonly Cell[], paper: Paper): string {
  if (paper.width === null) return cells.map((each) => cellText(each, paper, "whole")).join("\t");
  return cutTo(cells.map((each) => cellText(each, paper, "exact")).join(" ".repeat(gap)), paper.width);
}

function renderFields(given: readonly (readonly [string, Cell])[], paper: Paper): string {
  const fields = given.map(([name, cell]) => [plainLine(name), cell] as const);
  if (paper.width === null) {
    return fields.map(([name, cell]) => `${name}\t${cellText(cell, paper, "whole")}`).join("\n");
  }
  const width = Math.max(0, ...fields.map(([name]) => widthOf(name)));
  return fields
    .map(
      ([name, cell]) => `${bold(name.padEnd(width), paper)}  ${coloured(cellText(cell, paper, "long"), cell, paper)}`,
    )
    .join("\n");
}

/** `whole` is for programs; a time is `exact` to the second, `short`, or `long` with its distance. */
type Form = "whole" | "exact" | "short" | "long";

function cellText(cell: Cell, paper: Paper, form: Form): string {
  if (cell === null) return "";
  if (typeof cell !== "object") return plainLine(String(cell));
  if (cell.kind === "id") return plainLine(cell.text ?? "");
  if (cell.kind === "status") return plainLine(cell.text + cell.more);
  if (cell.kind === "words") return plainLine(cell.words.map((each) => cellText(each, paper, form)).join(" "));
  if (cell.ms === null) return "";
  return cell.kind === "ago" && form !== "whole" ? distance(cell.ms, paper.now) : timeText(cell.ms, paper, form);
}

function timeText(ms: number, { zone, now }: Paper, form: Form): string {
  const { day, clock, millis, offset } = inZone(ms, zone);
  switch (form) {
    case "whole":
      return `${day}T${clock}.${millis}${offset}`;
    case "exact":
      return `${day} ${clock}`;
    case "long":
      return `${day} ${clock}${offset} (${distance(ms, now)})`;
    case "short": {
      const today = inZone(now, zone).day;
      if (day === today) return clock;
      return day.slice(0, 4) === today.slice(0, 4) ? `${day.slice(5)} ${clock.slice(0, 5)}` : day;
    }
  }
}

/** How far a moment is from now. Below a second the figure would be noise: the clocks of two machines differ by more. */
export function distance(ms: number, now: number): string {
  const since = now - ms;
  if (Math.abs(since) < 1000) return "now";
  const text = formatDuration(Math.floor(Math.abs(since) / 1000) * 1000);
  return since > 0 ? `${text} ago` : `in ${text}`;
}

export const statusColours = new Map<string, "green" | "red" | "yellow" | "cyan" | "dim">([
  ["waiting", "yellow"],
  ["queued", "cyan"],
  ["running", "green"],
  ["active", "green"],
  ["open", "cyan"],
  ["partial", "yellow"],
  ["released", "dim"],
  ["expired", "dim"],
  ["completed", "dim"],
  ["success", "dim"],
  ["failed", "red"],
  ["error", "red"],
  ["timed_out", "red"],
  ["lost", "red"],
  ["dead", "red"],
  ["dead_lettered", "red"],
  ["acked", "dim"],
  ["scheduled", "yellow"],
  ["succeeded", "dim"],
  ["cancelled", "yellow"],
  ["skipped", "yellow"],
  ["unknown", "yellow"],
  ["excellent", "green"],
  ["good", "green"],
  ["warning", "yellow"],
  ["critical", "red"],
]);

function coloured(text: string, cell: Cell, paper: Paper): string {
  const colour = typeof cell === "object" && cell?.kind === "status" ? statusColours.get(cell.text) : undefined;
  return colour === undefined || !paper.colour ? text : styleText(colour, text, { validateStream: false });
}

function bold(text: string, { colour }: Paper): string {
  return colour ? styleText("bold", text, { validateStream: false }) : text;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

export type Clock = {
  /** 2026-11-18 */
  readonly day: string;
  /** 09:30:00 */
  readonly clock: string;
  readonly millis: string;
  /** Z, or +01:00 */
  readonly offset: string;
};

export function inZone(ms: number, zone: string): Clock {
  const offset = zone === "UTC" ? "Z" : offsetOf(ms, zone);
  const minutes = offset === "Z" ? 0 : (offset.startsWith("-") ? -1 : 1) * minutesOf(offset);
  const [day = "", rest = ""] = new Date(ms + minutes * 60_000).toISOString().split("T");
  return { day, clock: rest.slice(0, 8), millis: rest.slice(9, 12), offset };
}

function minutesOf(offset: string): number {
  const [hours = "0", minutes = "0"] = offset.slice(1).split(":");
  return Number(hours) * 60 + Number(minutes);
}

function offsetOf(ms: number, zone: string): string {
  const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  const name = format.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
  // Zones of long ago were off by seconds, too; minutes are enough to read.
  return /[+-]\d\d:\d\d/.exec(name)?.[0] ?? "Z";
}
