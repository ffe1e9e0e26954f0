// What a command has to say, apart from how it is said: one JSON document for machines, or text for people.
import type { Command } from "commander";
import { plainJson } from "../verbs/plain.ts";

export type Answer = {
  /** What `--json` prints: plain values, times as ISO 8601 text. */
  readonly json: unknown;
  /** What people read. It is made only when it is wanted, since tables cost a module. */
  text(): string | Promise<string>;
  /** What is said to a person besides. It goes to standard error, so that a pipe carries the answer alone. */
  readonly besides?: string;
  /** Other than 0 when the command did its work and the answer is bad news; docs/cli.md lists them. */
  readonly exit?: number;
};

export async function printAnswer(command: Command, answer: Answer): Promise<void> {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  const text = json === true ? plainJson(answer.json, 2) : await answer.text();
  process.stdout.write(`${text}\n`);
  if (json !== true && answer.besides !== undefined) process.stderr.write(`${answer.besides}\n`);
  if (answer.exit !== undefined) process.exitCode = answer.exit;
}
