// Where in the user's code a registration was made: its place, always, and the text of its call, if it can be found.
import { remember } from "../core/remember.ts";
import { stat, readFile } from "node:fs/promises";
import { SourceMap, type SourceMapPayload } from "node:module";
import { relative, sep, dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { getCallSites } from "node:util";
import type { CallExpression, Node } from "oxc-parser";
import { limits } from "../core/limits.ts";
import { storableText } from "../core/quote.ts";

/** A place in the running code. */
export type CallSite = {
  /** A path: of the compiled file, where there is one. Null for code that is in no file. */
  readonly file: string | null;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  /** The code was made at run time (eval): the place is where that happened. */
  readonly made: boolean;
};

const nowhere: CallSite = { file: null, line: 0, column: 0, made: true };

/** Daybook itself, in src or in dist: its own frames are skipped. */
const own = new URL(import.meta.url).href.replace(/apps\/[^/]*$/, "");

const framesMax = 30;

/** The first place on the stack that is not Daybook's own. It reads and parses nothing. */
export function callSite(): CallSite {
  try {
    const frames = getCallSites(framesMax, { sourceMap: false });
    const from = frames.findIndex(({ scriptName }) => !scriptName.startsWith(own));
    if (from < 0) return nowhere;
    const made = !isFile(frames[from]?.scriptName ?? "");
    const frame = frames.slice(from).find(({ scriptName }) => isFile(scriptName));
    if (frame === undefined) return nowhere;
    return { file: pathOf(frame.scriptName), line: frame.lineNumber, column: frame.columnNumber, made };
  } catch {
    return nowhere;
  }
}

/** The first place of a trace in a file of the user's; null when there is none. */
export async function placeIn(trace: string | null): Promise<string | null> {
  for (const [, script = "", line, column] of (trace ?? "").matchAll(
    /(?:\(|at )((?:file:\/\/)?\/[^\s()]+?):(\d+):(\d+)\)?$/gm,
  )) {
    if (script.startsWith(own) || script.includes("/node_modules/")) continue;
    const site = { file: pathOf(script), line: Number(line), column: Number(column), made: true };
    return (await resolveSource(site)).location;
  }
  return null;
}

function isFile(script: string): boolean {
  return script.startsWith("file:") || script.startsWith(sep);
}

// A file that was reloaded has a query after its name.
function pathOf(script: string): string {
  if (!script.startsWith("file:")) return script;
  const url = new URL(script);
  url.search = "";
  url.hash = "";
  return fileURLToPath(url);
}

/** `apps/lights.ts:42`, relative to the working folder if the file is inside it. */
export function locationOf({ file, line }: Pick<CallSite, "file" | "line">): string {
  if (file === null) return "<unknown>";
  const short = relative(process.cwd(), file);
  return `${short === "" || short.startsWith("..") ? file : short.replaceAll(sep, "/")}:${line}`;
}

export type Source = { readonly location: string; readonly text: string | null };

type KnownFile = { readonly read: Promise<ReadSource>; readonly calls: Map<string, Promise<Calls>> };

/** Reads the file of a call site, once per file and setup, after the setup has ended. */
export async function resolveSource(site: CallSite): Promise<Source> {
  const plain = { location: locationOf(site), text: null };
  if (site.file === null) return plain;
  try {
    const { read, calls } = await knownFile(site.file);
    const origin = await originOf(await read, site);
    const location = locationOf(origin);
    if (site.made) return { location, text: null };
    return { location, text: await textOf(origin, calls).catch(() => null) };
  } catch {
    return plain;
  }
}

async function textOf(
  { file, text, line, column }: Awaited<ReturnType<typeof originOf>>,
  calls: Map<string, Promise<Calls>>,
): Promise<string | null> {
  let parsed = calls.get(file);
  if (parsed === undefined) calls.set(file, (parsed = parseCalls(file, text)));
  return findCall(text, await parsed, line, column);
}

// A file that has changed is another one, and is read again.
async function knownFile(file: string): Promise<KnownFile> {
  const { mtimeMs, size } = await stat(file);
  return fileAsItIs(JSON.stringify([file, mtimeMs, size]));
}

const fileAsItIs = remember(
  (stamped: string): KnownFile => {
    const [file] = JSON.parse(stamped) as [string];
    return { read: readSource(file), calls: new Map() };
  },
  { max: 200 },
);

/** A place in a source file, line and column from 1, with the file's text. */
type Origin = {
  readonly file: string;
  readonly text: string;
  readonly line: number;
  readonly column: number;
};

/** A file: its text, and its source map if it has one. */
type ReadSource = { readonly file: string; readonly text: string; readonly map: SourceMap | null };

async function readSource(file: string): Promise<ReadSource> {
  const text = await readFile(file, "utf8");
  return { file, text, map: await readMap(file, text).catch(() => null) };
}

async function readMap(file: string, text: string): Promise<SourceMap | null> {
  const url = [...text.matchAll(/^\/\/[#@] ?sourceMappingURL=(\S+)\s*$/gm)].at(-1)?.[1];
  if (url === undefined) return null;
  const inline = /^data:application\/json[^,]*?(;base64)?,(.*)$/s.exec(url);
  const json =
    inline === null
      ? await readFile(new URL(url, pathToFileURL(file)), "utf8")
      : Buffer.from(decodeURIComponent(inline[2] ?? ""), inline[1] === undefined ? "utf8" : "base64").toString();
  return new SourceMap(JSON.parse(json) as SourceMapPayload);
}

// From a place in a compiled file to its place in the original source, by the source map beside it. Node does this itself only
// when it was started with source maps on.
async function originOf(
  { file, text, map }: ReadSource,
  { line, column }: { readonly line: number; readonly column: number },
): Promise<Origin> {
  const here = { file, text, line, column };
  if (map === null) return here;
  const entry = map.findEntry(line - 1, column - 1);
  if (!("originalSource" in entry)) return here;
  const source = entry.originalSource.startsWith("file:")
    ? fileURLToPath(entry.originalSource)
    : resolve(dirname(file), map.payload.sourceRoot, entry.originalSource);
  const index = map.payload.sources.indexOf(entry.originalSource);
  const original = map.payload.sourcesContent?.[index] ?? (await readFile(source, "utf8").catch(() => null));
  if (original === null) return here;
  // A map knows only the starts of words, and a call site is the start of one.
  return { file: source, text: original, line: entry.originalLine + 1, column: entry.originalColumn + 1 };
}

type Calls = readonly CallExpression[];

/** All calls in a text. It parses the file: brackets in strings, comments and templates would fool anything less. */
async function parseCalls(file: string, text: string): Promise<Calls> {
  const { parseSync, Visitor } = await import("oxc-parser");
  const { program } = parseSync(file, text);
  const calls: CallExpression[] = [];
  new Visitor({ CallExpression: (call) => void calls.push(call) }).visit(program);
  return calls;
}

/** The text of the call at this line and column, both from 1. V8 gives the place of the name (`on` in `app.on(…)`), or of the
 *  parenthesis where the name is no plain one (`app.in(…)`, `app["on"](…)`), so chained calls can be told apart. */
function findCall(text: string, calls: Calls, line: number, column: number): string | null {
  const at = offsetOf(text, line, column);
  let [found, length]: [CallExpression | undefined, number] = [undefined, Number.POSITIVE_INFINITY];
  for (const call of calls) {
    if (call.start > at || call.end <= at) continue;
    const start = nameStart(call.callee);
    const parenthesis = skipSpace(text, (call.typeArguments ?? call.callee).end);
    if (start > at || at > parenthesis || parenthesis - start >= length) continue;
    [found, length] = [call, parenthesis - start];
  }
  if (found === undefined) return null;
  return storableText(text.slice(ownStart(text, found), found.end), limits.registrationSourceBytesMax);
}

function nameStart(callee: Node): number {
  if (callee.type === "MemberExpression") return callee.property.start;
  return callee.start;
}

/** Where a call begins that is chained to another: at its own name, because each has its own text. */
function ownStart(text: string, { start, callee }: CallExpression): number {
  if (callee.type !== "MemberExpression" || !isCall(callee.object)) return start;
  return callee.computed ? skipSpace(text, callee.object.end) : callee.property.start;
}

function isCall(node: Node): boolean {
  if (
    node.type === "ParenthesizedExpression" ||
    node.type === "TSNonNullExpression" ||
    node.type === "ChainExpression"
  ) {
    return isCall(node.expression);
  }
  return node.type === "CallExpression";
}

/** The next place that is no space, comment, `?.` or `!`. */
function skipSpace(text: string, from: number): number {
  const space = /(?:\s|\/\*[^]*?\*\/|\/\/[^\n\r\u2028\u2029]*|\?\.|!)*/y;
  space.lastIndex = from;
  space.test(text);
  return space.lastIndex;
}

function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let left = line - 1; left > 0; left--) {
    const end = /\r\n|[\n\r\u2028\u2029]/g;
    end.lastIndex = start;
    const match = end.exec(text);
    if (match === null) return -1;
    start = match.index + match[0].length;
  }
  return start + column - 1;
}
