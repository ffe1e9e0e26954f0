// How to go on after a page.
import type { Command, Option } from "commander";

/** The line under a page that another follows: the same command with what it was given, to be run as it stands. */
export function moreOf(command: Command, answer: unknown): string | undefined {
  const next: unknown = typeof answer === "object" && answer !== null && "next" in answer ? answer.next : null;
  return typeof next === "string" ? moreLine(command, next) : undefined;
}

function moreLine(command: Command, next: string): string {
  const path = lineOf(command);
  const words = path.slice(1).map((each) => each.name());
  const all = ["daybook", ...words, ...command.args.map(forShell), ...path.flatMap(givenTo), "--after", next];
  return `There are more: ${all.join(" ")}`;
}

/** The commands that lead to this one, the program first. */
function lineOf(command: Command): Command[] {
  return command.parent === null ? [command] : [...lineOf(command.parent), command];
}

function givenTo(command: Command): string[] {
  const given = command.options.filter((option) => {
    const name = option.attributeName();
    return name !== "after" && command.getOptionValueSource(name) === "cli" && !isOtherHalf(option, command);
  });
  return given.flatMap((option) => {
    const value: unknown = command.getOptionValue(option.attributeName());
    const long = option.long ?? "";
    // The address of a server may hold a password, which is not to be shown.
    if (long === "--book" && /^postgres(ql)?:/.test(String(value))) return [];
    if (typeof value === "boolean") return [long];
    return [value].flat().flatMap((each) => [long, forShell(String(each))]);
  });
}

/** `--no-retried` when it was `--retried` that was given, and the other way round. */
function isOtherHalf(option: Option, command: Command): boolean {
  return option.negate === (command.getOptionValue(option.attributeName()) === true) && !option.required;
}

function forShell(text: string): string {
  return /^[\w.,:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
