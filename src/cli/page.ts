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

/** The line under a table that has a following page: the same command with the same filters. */
export function nextPage(command: Command, next: string | null): string[] {
  if (next === null) return [];
  const given = command.options
    .filter((option) => !["limit", "after"].includes(option.attributeName()))
    .filter((option) => command.getOptionValueSource(option.attributeName()) === "cli")
    .map((option) => {
      const value: unknown = command.getOptionValue(option.attributeName());
      return value === true ? (option.long ?? "") : `${option.long ?? ""} ${forShell(String(value))}`;
    });
  return ["", `There are more: ${["daybook", ...pathOf(command), ...given, "--after", next].join(" ")}`];
}

/** The words that lead to a command: `jobs list`. */
function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()];
}

function forShell(text: string): string {
  return /^[\w.,:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
