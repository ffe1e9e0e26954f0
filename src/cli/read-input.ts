// The input of a verb from what was typed: each word and option is read as its field wants it, and all are checked.
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import type { Command } from "commander";
import { DaybookError, invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import type { Field } from "../verbs/field.ts";
import { checkInput, fieldsOf, placesOf, type Verb } from "../verbs/verb.ts";
import { optionOf } from "./commands.ts";

export type Input = Record<string, unknown>;

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
