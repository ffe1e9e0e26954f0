// A path into a document, and the declaration of an index on it. A path is a list of names, taken literally: a dot, a quote or
// `__proto__` in a name is part of the name.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { refuseUnknown } from "../../core/suggest.ts";

export type Path = readonly string[];

type Names<Value> = Value extends readonly unknown[] ? never : Value extends object ? keyof Value & string : never;

/** One name, or several from the outside in. */
export type PathInput<Value> = Names<Value> | readonly [Names<Value>, ...string[]];

export type IndexInput<Value> =
  | PathInput<Value>
  | {
      readonly path: PathInput<Value>;
      /** Also for questions about the past (`asOf`). */
      readonly temporal?: boolean;
      /** For `any` over an array of texts, numbers or booleans. */
      readonly each?: boolean;
    };

export type Index = { readonly path: Path; readonly temporal: boolean; readonly each: boolean };

export function checkIndexes(inputs: readonly unknown[], type: string): readonly Index[] {
  return inputs.map((input) => {
    const what = `an index of "${type}"`;
    if (typeof input === "string" || Array.isArray(input)) {
      return { path: checkPath(input, what), temporal: false, each: false };
    }
    if (typeof input !== "object" || input === null) throw invalid(`${what} is ${quote(input)}: name a field`);
    refuseUnknown(input, ["path", "temporal", "each"], what);
    const { path, temporal, each } = input as { path?: unknown; temporal?: unknown; each?: unknown };
    if (temporal === true && each === true) throw invalid(`${what} is temporal and for each item: choose one`);
    return { path: checkPath(path, what), temporal: temporal === true, each: each === true };
  });
}

export function checkPath(input: unknown, what: string): Path {
  const path: unknown[] = Array.isArray(input) ? input : [input];
  if (path.length === 0) throw invalid(`${what} has an empty path: name a field`);
  return checkSegments(path, what);
}

/** Checks the names of a path. An empty path is the thing itself. */
export function checkSegments(path: readonly unknown[], what: string): Path {
  if (path.length > limits.pathSegmentsMax) {
    throw invalid(`${what} has a path of ${path.length} names: a document is at most ${limits.pathSegmentsMax} deep`);
  }
  return path.map((segment) => {
    if (typeof segment !== "string") throw invalid(`${what} has ${quote(segment)} in its path, which is no text`);
    if (!segment.isWellFormed() || segment.includes("\0")) {
      throw invalid(`${what} has a lone surrogate or U+0000 in its path: no document has such a field`);
    }
    if (Buffer.byteLength(segment) > limits.keyBytesMax) {
      throw invalid(`${what} has a name of more than ${limits.keyBytesMax} bytes in its path`);
    }
    return segment;
  });
}

export function samePath(one: Path, other: Path): boolean {
  return one.length === other.length && one.every((segment, index) => segment === other[index]);
}
