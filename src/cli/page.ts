// The two options of every list: how many rows, and where to go on.
import type { Command } from "commander";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";

export type PageOptions = { readonly limit: number; readonly after?: string };

export function addPageOptions(command: Command): Command {
  return command
    .option("--limit <n>", `how many to list, at most ${limits.pageMax}`, wholeNumber, limits.pageDefault)
    .option("--after <cursor>", 'go on after a page: "next" of its JSON, or the last line of its table');
}

function wholeNumber(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 1 && value <= limits.pageMax)) {
    throw invalid(`--limit ${quote(text)} is not a whole number from 1 to ${limits.pageMax}`);
  }
  return value;
}

/** The line under a table that has a following page: the same command with what it was given, to be run as it stands. */
export function nextPage(command: Command, next: string | null): string[] {
  if (next === null) return [];
  const path = lineOf(command);
  const words = path.slice(1).map((each) => each.name());
  return [
    "",
    `There are more: ${["daybook", ...words, ...command.args.map(forShell), ...path.flatMap(givenTo), "--after", next].join(" ")}`,
  ];
}

/** The commands that lead to this one, the program first. */
function lineOf(command: Command): Command[] {
  return command.parent === null ? [command] : [...lineOf(command.parent), command];
}

function givenTo(command: Command): string[] {
  return command.options
    .filter(
      (option) => option.attributeName() !== "after" && command.getOptionValueSource(option.attributeName()) === "cli",
    )
    .flatMap((option) => {
      const value: unknown = command.getOptionValue(option.attributeName());
      const long = option.long ?? "";
      // The address of a server may hold a password, which is not to be shown.
      if (long === "--book" && /^postgres(ql)?:/.test(String(value))) return [];
      return value === true ? [long] : [long, forShell(String(value))];
    });
}

function forShell(text: string): string {
  return /^[\w.,:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
