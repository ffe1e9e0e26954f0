// Runs a verb from a shell: its input is read and checked, the book is opened as the verb needs it, and the answer is printed.
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import type { Command, Option } from "commander";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import type { Definition } from "../open/use.ts";
import type { Field } from "../verbs/field.ts";
import { plainJson, plainLines } from "../verbs/plain.ts";
import { render, type Paper } from "../verbs/render.ts";
import { partsOf } from "../verbs/shown.ts";
import { checkInput, fieldsOf, placesOf, type Call, type Verb } from "../verbs/verb.ts";
import { toWire, type Outputs } from "../verbs/wire.ts";
import { changing, looking, withBook, type Access, type Answer } from "./with-book.ts";
import { optionOf } from "./commands.ts";

export async function runVerb(command: Command, key: string, verb: Verb): Promise<void> {
  const input = await readInput(command, verb);
  const work = (use: readonly Definition[]): Promise<void> =>
    withBook(command, accessOf(command, { verb, input, use }), (book, signal) =>
      answerOf(command, key, { verb, book, input, signal }),
    );
  return verb.definitions === undefined ? work([]) : withDefinitions(command, verb, input, work);
}

type Input = Record<string, unknown>;

/** What the words and options say, each read as its field wants it and checked before anything else happens. */
export async function readInput(command: Command, verb: Verb, read: typeof readText = readText): Promise<Input> {
  const given = new Map<string, unknown>(Object.entries(command.opts()));
  const input: Input = {};
  const places = placesOf(verb);
  for (const [name, field] of fieldsOf(verb)) {
    const place = places.findIndex((each) => each.name === name);
    const called = place === -1 ? optionOf(name, field) : name;
    const value: unknown = place === -1 ? given.get(attributeOf(called)) : command.processedArgs[place];
    if (value !== undefined) input[name] = await readValue(value, field, called, read);
  }
  return checkInput(verb, input, (name) => {
    const field = verb.input[name];
    return field === undefined || places.some((each) => each.name === name) ? name : optionOf(name, field);
  });
}

async function readValue(value: unknown, field: Field, called: string, read: typeof readText): Promise<unknown> {
  if (typeof value === "boolean") return value;
  if (Array.isArray(value)) {
    const texts = value.map(String);
    return field.fromTexts?.(texts, called) ?? texts.flatMap((each) => field.fromText(each, called));
  }
  const text = String(value);
  return field.fromText(field.kind === "json" ? await read(text, called) : text, called);
}

/** What commander calls an option: `--key-scope` is `keyScope`. */
function attributeOf(option: string): string {
  return option.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
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

/** Undefined when it was printed as it came. */
async function answerOf(command: Command, key: string, running: Running): Promise<Answer | undefined> {
  const { verb, book, input, signal } = running;
  const isGiven = command.getOptionValueSourceWithGlobals("tenant") !== "default";
  const call: Call = { signal, tenant: isGiven ? book.tenantId : null };
  const { utc = false, json = false } = command.optsWithGlobals<{ utc?: boolean; json?: boolean }>();
  const paper = paperOf(process.stdout, { utc });
  const answer = verb.run(book, input, call);
  if (verb.stream === true || verb.lines === true) {
    for await (const item of answer as AsyncIterable<unknown>) {
      const shown = (): string => render(verb.show(item, input), paper);
      const line = verb.lines === true ? plainLines(String(item)) : json ? plainJson(await onWire(key, item)) : shown();
      process.stdout.write(`${line}\n`);
    }
    return undefined;
  }
  return toAnswer(command, key, { ...running, paper, json, given: await answer });
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

type Given = Running & { readonly paper: Paper; readonly json: boolean; readonly given: unknown };

async function toAnswer(
  command: Command,
  key: string,
  { verb, book, input, paper, json, given }: Given,
): Promise<Answer> {
  if (verb.text === true) return { json: { text: given }, text: () => plainLines(String(given)).trimEnd() };
  const aside = json || verb.aside === undefined ? [] : await verb.aside(book, given);
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
  const { default: made } = (await import("../verbs/outputs.json", { with: { type: "json" } })) as { default: Outputs };
  return toWire(answer, made.outputs[key], made.defs);
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
    // A password is not to be shown; who gave one gives the book again.
    if (long === "--book" && /^postgres(ql)?:/.test(String(value)) && holdsPassword(String(value))) return [];
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

function forShell(text: string): string {
  return /^[\w.,:@/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The text itself, or that of the file or of standard input. */
export async function readText(given: string, what: string): Promise<string> {
  if (given === "-") return readAll(process.stdin, what);
  return given.startsWith("@") ? readFile(given.slice(1), what) : given;
}

async function readFile(path: string, what: string): Promise<string> {
  try {
    return await readAll(createReadStream(path), what);
  } catch (cause) {
    const code: unknown = Error.isError(cause) ? Reflect.get(cause, "code") : undefined;
    if (code === "ENOENT") throw new DaybookError("not_found", `there is no file ${quote(path)} to read ${what} from`);
    if (typeof code === "string" && code.startsWith("E")) {
      throw invalid(`${what} cannot be read from ${quote(path)}: ${code}`, { cause });
    }
    throw cause;
  }
}

// A pipe has no end that we know of, so it is measured while it comes.
async function readAll(stream: Readable, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > limits.jsonBytesMax) {
      throw invalid(`${what} has more than ${limits.jsonBytesMax} bytes; keep the bulk in a file and pass its path`);
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}
