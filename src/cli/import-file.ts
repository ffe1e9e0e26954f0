// A user's file as a module, and the definitions among what it exports.
import { pathToFileURL } from "node:url";
import { describeError, invalid } from "../core/error.ts";
import { isDefinition, type Definition } from "../open/use.ts";

export async function importFile(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (cause) {
    const { type, message, trace } = describeError(cause);
    // The first place in a file, of this module or of one that it imports.
    const [, place] = /(?:file:\/\/)(\/[^\s()?]+?(?:\?[^\s():]*)?:\d+(?::\d+)?)/.exec(trace ?? "") ?? [];
    const where = place === undefined ? "" : ` (${decodeURI(place.replace(/\?[^:]*/, ""))})`;
    throw invalid(`${file} cannot be loaded: ${type}: ${message}${where}`, { cause, details: { path: file, trace } });
  }
}

/** One by one or in lists, each once. */
export function definitionsIn(module: Record<string, unknown>): readonly Definition[] {
  return [...new Set(Object.values(module).flat().filter(isDefinition))];
}
