// What a verb answered, printed for people or for programs, whether a book or a server answered.
import type { Command } from "commander";
import { systemClock } from "../core/clock.ts";
import { plainJson, plainLines } from "../verbs/plain.ts";
import { render, type Paper } from "../verbs/render.ts";
import { partsOf } from "../verbs/shown.ts";
import type { Ask, Verb } from "../verbs/verb.ts";
import { toWire, type Outputs } from "../verbs/wire.ts";
import { moreOf } from "./more-line.ts";
import type { Input } from "./read-input.ts";
import type { Answer } from "./with-book.ts";

export type Answered = {
  readonly verb: Verb;
  readonly input: Input;
  /** What `run` of the verb returns, or a promise of it. */
  readonly answer: unknown;
  readonly ask: Ask;
};

/** Undefined when it was printed as it came. */
export async function showAnswer(command: Command, key: string, answered: Answered): Promise<Answer | undefined> {
  const { verb, input, answer } = answered;
  const { utc = false, json = false } = command.optsWithGlobals<{ utc?: boolean; json?: boolean }>();
  const paper = paperOf(process.stdout, { utc });
  if (verb.stream === true || verb.lines === true) {
    for await (const item of answer as AsyncIterable<unknown>) {
      const shown = (): string => render(verb.show(item, input), paper);
      const line = verb.lines === true ? plainLines(String(item)) : json ? plainJson(await onWire(key, item)) : shown();
      process.stdout.write(`${line}\n`);
    }
    return undefined;
  }
  return toAnswer(command, key, { ...answered, paper, json, given: await answer });
}

/** What it prints on: a terminal of some width, in the reader's zone, or a pipe. */
function paperOf(stream: NodeJS.WriteStream, { utc }: { utc: boolean }): Paper {
  const isTerminal = stream.isTTY === true;
  return {
    width: isTerminal ? stream.columns : null,
    colour: isTerminal && stream.hasColors(),
    zone: utc ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone,
    now: systemClock.now(),
  };
}

type Given = Answered & { readonly paper: Paper; readonly json: boolean; readonly given: unknown };

async function toAnswer(
  command: Command,
  key: string,
  { verb, ask, input, paper, json, given }: Given,
): Promise<Answer> {
  if (verb.text === true) return { json: { text: given }, text: () => plainLines(String(given)).trimEnd() };
  const aside = json || verb.aside === undefined ? [] : await verb.aside(ask, given);
  const verdict = verb.verdict?.(given);
  const more = moreOf(command, given);
  return {
    json: json ? await onWire(key, given) : undefined,
    text: () => render([...partsOf(verb.show(given, input)), ...partsOf(aside)], paper),
    ...(more === undefined ? {} : { besides: more }),
    ...(verdict === undefined ? {} : { exit: exits[verdict] }),
  };
}

/** Above the exit codes of errors: nothing is wrong with the command. */
const exits = { found: 20, open: 21, otherwise: 22 } as const;

async function onWire(key: string, answer: unknown): Promise<unknown> {
  const { outputs, defs } = await answerSchemas();
  return toWire(answer, outputs[key], defs);
}

/** Imported when an answer is there: help needs none of them. */
export async function answerSchemas(): Promise<Outputs> {
  const { default: made } = (await import("../verbs/outputs.json", { with: { type: "json" } })) as { default: Outputs };
  return made;
}
