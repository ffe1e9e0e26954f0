// Runs a verb from a shell: its input is read and checked, the book is opened as the verb needs it, and the answer is printed.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { invalid } from "../core/error.ts";
import type { Definition } from "../open/use.ts";
import type { Ask, Call, Verb } from "../verbs/verb.ts";
import { isOnServer } from "./target.ts";
import { readInput, type Input } from "./read-input.ts";
import { showAnswer } from "./show-answer.ts";
import { changing, looking, withBook, type Access, type Answer } from "./with-book.ts";
import { openProgressLine } from "./progress-line.ts";

export async function runVerb(command: Command, key: string, verb: Verb): Promise<void> {
  const input = await readInput(command, verb);
  if (isOnServer(command, verb)) {
    // Imported here and not above: what a book needs and what a server needs are loaded by those who use it.
    const { callServer } = await import("./call-server.ts");
    return callServer(command, key, verb, input);
  }
  if (verb.background !== undefined && command.getOptionValueSource("wait") === "cli") {
    throw invalid("--no-wait is for a server: a book is worked on by this process itself");
  }
  const work = (use: readonly Definition[]): Promise<void> =>
    withBook(command, accessOf(command, { verb, input, use }), (book, signal) =>
      answerOf(command, key, { verb, book, input, signal }),
    );
  return verb.definitions === undefined ? work([]) : withDefinitions(command, verb, input, work);
}

/** It runs something, so it is a session. Who ends it by a signal does not want to wait for the job. */
const working: Access = { attach: true, migrate: false, worker: { grace: 0 } };

type Opening = { readonly verb: Verb; readonly input: Input; readonly use: readonly Definition[] };

/** How the book is opened: what destroys only reads it until it is told to apply what it said. */
export function accessOf(command: Command, { verb, input, use }: Opening): Access {
  const { role, destroys, needs = role === "read" ? "read" : "write" } = verb;
  const isDestroying = destroys === true || (destroys !== undefined && input[destroys] === true);
  const { files } = command.opts<{ files?: string }>();
  const given = verb.files === true && files !== undefined ? { files } : {};
  if (needs === "read" || (isDestroying && input["apply"] !== true)) return { ...looking, ...given };
  return { ...(needs === "session" ? working : changing), ...given, use };
}

type Running = { readonly verb: Verb; readonly book: Book; readonly input: Input; readonly signal: AbortSignal };

async function answerOf(
  command: Command,
  key: string,
  { verb, book, input, signal }: Running,
): Promise<Answer | undefined> {
  const isGiven = command.getOptionValueSourceWithGlobals("tenant") !== "default";
  const line = openProgressLine(process.stderr);
  const call: Call = { signal, tenant: isGiven ? book.tenantId : null, progress: line.progress };
  const ask: Ask = (other, wanted) => Promise.resolve(other.run(book, wanted, call));
  try {
    return await showAnswer(command, key, { verb, input, answer: verb.run(book, input, call), ask });
  } finally {
    line.stop();
  }
}

async function withDefinitions(
  command: Command,
  verb: Verb,
  input: Input,
  work: (use: readonly Definition[]) => Promise<void>,
): Promise<void> {
  const { from, config } = command.opts<{ from?: string; config?: string }>();
  const { pickDefinition, withConfig, withDefinitions: withThese } = await import("./load-definitions.ts");
  const named = verb.definitionsOf?.(input) ?? [];
  const kind = verb.definitionKind ?? "job";
  if (verb.definitions === "may" && from === undefined) {
    return withConfig(config, kind, (use) => {
      // Whoever names the config wants the definition to be in it.
      if (config !== undefined) for (const name of named) pickDefinition(use, { kind, name, from: config });
      return work(use);
    });
  }
  const where = from ?? config ?? "daybook.config.ts";
  return withThese({ module: from, config }, kind, (use) =>
    work(named.length === 0 ? use : named.map((name) => pickDefinition(use, { kind, name, from: where }))),
  );
}
