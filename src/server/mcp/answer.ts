// What an assistant is told: the answer of a verb in wire form, bounded in items and bytes, or what went wrong and what to do.
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { systemClock } from "../../core/clock.ts";
import { asDaybookError, errorCodes, invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { plainJson } from "../../verbs/plain.ts";
import { checkInput, type Verb } from "../../verbs/verb.ts";
import { toWire, type Outputs } from "../../verbs/wire.ts";

export type Asking = {
  readonly key: string;
  readonly verb: Verb;
  readonly input: Record<string, unknown>;
  readonly signal: AbortSignal;
  /** Runs the verb on checked input. */
  readonly run: (input: Record<string, unknown>, signal: AbortSignal) => unknown;
  readonly outputs: Outputs;
  /** How long what happens is waited for. */
  readonly streamMs: number;
};

export async function answerTo(asking: Asking): Promise<CallToolResult> {
  const { verb, run, signal } = asking;
  const input = checkInput(verb, asking.input);
  if (verb.stream === true || verb.lines === true) return collected(asking, input);
  const answer = await unlessAborted(signal, run(input, signal));
  if (verb.text === true) return textOf(String(answer));
  const wire = onWire(asking, answer);
  return bytesOf(wire) <= limits.toolBytesMax ? structured(wire) : smaller(asking, input, wire);
}

/** A verb need not know that its caller is gone. */
async function unlessAborted<T>(signal: AbortSignal, work: T | PromiseLike<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

function onWire({ key, outputs }: Pick<Asking, "key" | "outputs">, answer: unknown): unknown {
  return toWire(answer, outputs.outputs[key], outputs.defs);
}

function structured(wire: unknown): CallToolResult {
  const text = plainJson(wire ?? null);
  const isObject = typeof wire === "object" && wire !== null && !Array.isArray(wire);
  // The same twice, because there are clients that read only one of them.
  return { content: [{ type: "text", text }], ...(isObject ? { structuredContent: wire as Json } : {}) };
}

type Json = Record<string, unknown>;

function textOf(text: string): CallToolResult {
  const kept = text.length <= limits.toolBytesMax ? text : cutText(text, limits.toolBytesMax);
  return { content: [{ type: "text", text: kept }] };
}

/** The first items that come, until there are enough or it took long enough. */
async function collected(asking: Asking, input: Json): Promise<CallToolResult> {
  const { run, signal, streamMs } = asking;
  const enough = new AbortController();
  const timer = systemClock.after(streamMs, () => enough.abort(), { keepAlive: true });
  const both = AbortSignal.any([signal, enough.signal]);
  const answer = (await unlessAborted(both, run(input, both))) as AsyncIterable<unknown>;
  const source = answer[Symbol.asyncIterator]();
  const items: unknown[] = [];
  let bytes = 0;
  let ended = false;
  try {
    while (!enough.signal.aborted) {
      const next = await unlessAborted(both, source.next());
      if (next.done === true) ended = true;
      if (ended) break;
      const item = onWire(asking, next.value);
      bytes += bytesOf(item);
      // One item is given however large it is; what it is too large by is cut below.
      if (items.length > 0 && bytes > limits.toolBytesMax) break;
      items.push(item);
      if (items.length === limits.toolItemsMax) break;
    }
  } catch (error) {
    if (signal.aborted || !enough.signal.aborted) throw error;
  } finally {
    timer.cancel();
    enough.abort();
    // Not awaited: it may wait for the item that never comes.
    void source.return?.().catch(() => undefined);
  }
  const found = { items, ended };
  return structured(bytesOf(found) <= limits.toolBytesMax ? found : shorten(found));
}

/** A page is asked for once more, with as many items as there is room for, so that its cursor goes on behind them. */
async function smaller(asking: Asking, input: Json, wire: unknown): Promise<CallToolResult> {
  const { verb, run, signal } = asking;
  const { items } = wire as { items?: unknown };
  const isPage = verb.role === "read" && Object.hasOwn(verb.input, "limit") && Object.hasOwn(verb.input, "after");
  if (!isPage || !Array.isArray(items) || items.length < 2) return structured(shorten(wire));
  const limit = fitting(items);
  const again = onWire(asking, await unlessAborted(signal, run({ ...input, limit }, signal)));
  const page = bytesOf(again) <= limits.toolBytesMax ? again : shorten(again);
  const why = `The page has ${limit} items, because more would be over ${limits.toolBytesMax} bytes: go on with "after".`;
  const said = (page as { shortened?: string }).shortened;
  return structured({ ...(page as Json), shortened: said === undefined ? why : `${why} ${said}` });
}

/** How many of the first items fit, with some room for the cursor and for what is said about it. */
function fitting(items: readonly unknown[]): number {
  let room = limits.toolBytesMax * 0.9;
  const over = items.findIndex((item) => (room -= bytesOf(item) + 1) < 0);
  return over === -1 ? items.length : Math.max(1, over);
}

/** What is cut to, from much to little. The last still holds an id. */
const measures = [
  { characters: 4096, items: 200 },
  { characters: 1024, items: 50 },
  { characters: 256, items: 20 },
  { characters: 64, items: 5 },
  { characters: 64, items: 1 },
];

/** The same answer with long texts and lists cut. It keeps its form, so it still fits its schema. */
function shorten(wire: unknown): unknown {
  const bytes = bytesOf(wire);
  for (const measure of measures) {
    const { characters, items } = measure;
    const shortened =
      `The whole answer has ${bytes} bytes. Texts are cut after ${characters} characters and lists after ${items} items: ` +
      `ask for less at a time, or read the whole by another way in.`;
    const made = { ...(cutRoot(wire as Json, measure) as Json), shortened };
    if (bytesOf(made) <= limits.toolBytesMax) return made;
  }
  throw invalid(`the answer has ${bytes} bytes and cannot be shortened: ask for less, or read it by another way in`);
}

type Measure = (typeof measures)[number];

// A cursor is of use only whole, and the items before it are those that it goes on behind.
function cutRoot(wire: Json, measure: Measure): unknown {
  const isPage = Array.isArray(wire["items"]) && "next" in wire;
  return Object.fromEntries(
    Object.entries(wire).map(([name, value]) => {
      if (isPage && name === "next") return [name, value];
      if (isPage && name === "items") return [name, (value as unknown[]).map((each) => cut(each, measure))];
      return [name, cut(value, measure)];
    }),
  );
}

/** No answer of ours has so many fields; what a user wrote may. */
const fieldsMax = 64;

function cut(value: unknown, measure: Measure): unknown {
  if (typeof value === "string") return cutText(value, measure.characters);
  if (Array.isArray(value)) return value.slice(0, measure.items).map((each) => cut(each, measure));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const kept = entries.slice(0, fieldsMax).map(([name, each]) => [name, cut(each, measure)]);
  const more = entries.length - fieldsMax;
  return Object.fromEntries(more > 0 ? [...kept, ["…", `${more} more fields`]] : kept);
}

function cutText(text: string, characters: number): string {
  const more = text.length - characters;
  // A character of two halves may be cut between them.
  return more <= 0 ? text : `${text.slice(0, characters).toWellFormed()}… (${more} more characters)`;
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "null");
}

/** Said as the answer of the tool, so that whoever called it can mend the call. */
export function failure(thrown: unknown): CallToolResult {
  const { code, message } = asDaybookError(thrown);
  const { meaning } = errorCodes[code];
  // The message of a defect may hold a statement or a path.
  const text =
    code === "internal"
      ? `internal: ${meaning} Whoever runs this server finds more in what it printed.`
      : `${code}: ${message}\n${meaning}`;
  return { isError: true, content: [{ type: "text", text }] };
}
