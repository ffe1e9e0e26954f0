// From a place in a compiled file to the place in the source it was made of, by the source map beside it. Node would do so
// itself only where it was started with source maps on.
import { readFile } from "node:fs/promises";
import { SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Line and column from 1, and the text they are in. */
export type Origin = {
  readonly file: string;
  readonly text: string;
  readonly line: number;
  readonly column: number;
};

/** A file that was read: its text, and its source map if it has one. */
export type ReadSource = { readonly file: string; readonly text: string; readonly map: SourceMap | null };

export async function readSource(file: string): Promise<ReadSource> {
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

export async function originOf(
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
  // A map knows the beginnings of words only, and the place of a call is one.
  return { file: source, text: original, line: entry.originalLine + 1, column: entry.originalColumn + 1 };
}
