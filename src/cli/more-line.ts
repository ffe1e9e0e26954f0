// The line that shows how to go on to the next page.
import type { Command, Option } from "commander";

/** The line under a page that another follows: the same command with what it was given, to be run as it stands. */
export function moreOf(command: Command, answer: unknown): string | undefined {
  const next: unknown = typeof answer === "object" && answer !== null && "next" in answer ? answer.next : null;
  return typeof next === "string" ? moreLine(command, next) : undefined;
}

function moreLine(command: Command, next: string): string {
  const path = lineOf(command);
  const words = path.slice(1).map((each) => each.name());
  const args = command.args.map(forShell);
  const options = [...path.flatMap(givenTo), "--after", next];
  // What begins like an option stands behind those, and says so.
  const isPlain = command.args.every((each) => !each.startsWith("-"));
  const all = ["daybook", ...words, ...(isPlain ? [...args, ...options] : [...options, "--", ...args])];
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
    // A password or a token is not to be shown; who gave one gives it again.
    if (long === "--book" && /^postgres(ql)?:/.test(String(value)) && holdsPassword(String(value))) return [];
    if (long === "--token" && !String(value).startsWith("@")) return [];
    if (typeof value === "boolean") return [long];
    return [value].flat().flatMap((each) => {
      const text = forShell(String(each));
      return String(each).startsWith("-") ? [`${long}=${text}`] : [long, text];
    });
  });
}

function holdsPassword(address: string): boolean {
  const url = URL.parse(address);
  return url === null || url.password !== "" || url.searchParams.has("password");
}

/** `--no-retried` when it was `--retried` that was given, and the other way round. */
function isOtherHalf(option: Option, command: Command): boolean {
  return option.negate === (command.getOptionValue(option.attributeName()) === true) && !option.required;
}

/** A word as a shell reads it. */
export function forShell(text: string): string {
  return /^[\w.,:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
