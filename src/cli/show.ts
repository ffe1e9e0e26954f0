// Values as people read them: sizes, moments, tables. Machines get them unchanged by --json.
import { styleText, stripVTControlCharacters } from "node:util";
import { systemClock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";

const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function showBytes(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** How long ago, and exactly when: the first is what one wants to know, the second is what one compares with a log. */
export function showTime(ms: number | null): { ago: string; exact: string } {
  if (ms === null) return { ago: "", exact: "" };
  const sinceMs = systemClock.now() - ms;
  // Below a second the figure would be noise; the clocks of two machines differ by more.
  const ago = Math.abs(sinceMs) < 1000 ? "now" : sinceMs > 0 ? `${duration(sinceMs)} ago` : `in ${duration(-sinceMs)}`;
  return { ago, exact: isoTime(ms).replace(/\.\d+Z$/, "Z") };
}

function duration(ms: number): string {
  return formatDuration(Math.floor(ms / 1000) * 1000);
}

/** One moment above the other in a cell, so that a table with three of them still fits a terminal. */
export function timeCell(ms: number | null): string {
  const { ago, exact } = showTime(ms);
  return ms === null ? "" : `${ago}\n${exact}`;
}

/** Text from the book for a cell: on one line, without anything that would move the cursor or colour the terminal. */
export function plainCell(text: string, lengthMax = 60): string {
  const line = stripVTControlCharacters(text)
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim();
  return line.length > lengthMax ? `${line.slice(0, lengthMax - 1)}…` : line;
}

/** Text of several lines from the book, such as a trace, without anything that would command the terminal. */
export function plainLines(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/(?![\n\t])\p{Cc}/gu, "");
}

/** A value of the book as JSON that a person can read. */
export function showJson(value: unknown): string {
  return plainLines(JSON.stringify(value, null, 2) ?? "undefined");
}

/** A table without frames: it can be read, copied and searched, and looks the same in a file. */
export async function showTable(head: readonly string[], rows: readonly (readonly string[])[]): Promise<string> {
  const { default: Table } = await import("cli-table3");
  const table = new Table({
    head: head.map(heading),
    chars: { ...frameless, middle: "  " },
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  for (const row of rows) table.push([...row]);
  return withoutTrailingSpace(table.toString());
}

/** Names on the left, values on the right. */
export async function showFields(fields: readonly (readonly [name: string, value: string])[]): Promise<string> {
  return showTable(
    [],
    fields.map(([name, value]) => [heading(name), value]),
  );
}

// styleText leaves the text alone when standard output is not a terminal, and when NO_COLOR is set.
function heading(text: string): string {
  return styleText("bold", text, { stream: process.stdout });
}

const frameless = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
};

function withoutTrailingSpace(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
