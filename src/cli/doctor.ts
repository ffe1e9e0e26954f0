// daybook doctor: asks every invariant of the book and says what to do about each that does not hold.
import { styleText } from "node:util";
import type { Command } from "commander";
import type { Finding } from "../book/examine.ts";
import type { Answer } from "./answer.ts";
import { plainCell } from "./show.ts";
import { looking, withBook } from "./with-book.ts";

/** Above the exit codes of errors: the command did its work, and the book is not well. */
const exitFound = 20;

const example = `
Exits with 0 when every check holds and with ${exitFound} when one found something. It changes nothing.

Example:
  $ daybook doctor --book shop.db || echo "look at the book"`;

export function doctor(program: Command): void {
  program
    .command("doctor")
    .description("check every invariant of the book, and say what to do about what is found")
    .addHelpText("after", example)
    .action((_options: unknown, command: Command) =>
      withBook(command, looking, async (book) => toAnswer(await book.doctor())),
    );
}

async function toAnswer(findings: readonly Finding[]): Promise<Answer> {
  const { checks } = await import("../book/examine.ts");
  return {
    json: { checks: checks.length, findings },
    text: () => inWords(findings, checks.length),
    ...(findings.length === 0 ? {} : { exit: exitFound }),
  };
}

function inWords(findings: readonly Finding[], checks: number): string {
  if (findings.length === 0) return `all ${checks} checks hold`;
  const parts = findings.map(({ promise, name, found, count, advice }) =>
    [
      `${styleText("red", promise, { stream: process.stdout })} does not hold: ${name} (${count} found)`,
      ...found.map((each) => `     ${plainCell(each, 100)}`),
      ...(count > found.length ? [`     … and ${count - found.length} more`] : []),
      `   → ${advice}`,
    ].join("\n"),
  );
  return [...parts, `${findings.length} of ${checks} checks found something`].join("\n\n");
}
