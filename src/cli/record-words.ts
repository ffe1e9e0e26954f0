// Records, conditions and moments as a shell gives and shows them.
import { invalid } from "../core/error.ts";
import { parseJson } from "../core/json.ts";
import { quote } from "../core/quote.ts";
import type { Entry } from "../records/entry.ts";
import type { AsOf } from "../records/moment.ts";
import type { Place, Side } from "../records/query/condition.ts";
import type { AnyRecordType, RelationKey } from "../records/define/definition.ts";
import { plainCell, showTable } from "./show.ts";

/** Words that take no value. */
const alone = ["isNull", "isNotNull"];
const keys: ReadonlyMap<string, Side> = new Map([
  ["@key", "key"],
  ["@from", "fromKey"],
  ["@to", "toKey"],
  ["@instance", "instanceKey"],
]);

/** `status eq '"paid"'`, one after the other. */
export function readFilters(words: readonly string[]): unknown[] {
  const found: unknown[] = [];
  for (let at = 0; at < words.length;) {
    const [path, op] = [words[at] ?? "", words[at + 1]];
    if (op === undefined) throw invalid(`--filter ${quote(path)} lacks a word: --filter status eq '"paid"'`);
    at += 2;
    if (alone.includes(op)) {
      found.push({ op, at: readPlace(path) });
      continue;
    }
    const text = words[at++];
    if (text === undefined) throw invalid(`--filter ${path} ${op} lacks a value in JSON: --filter status eq '"paid"'`);
    found.push({ op, at: readPlace(path), value: parseJson(text, { what: "the filter's value" }) });
  }
  return found;
}

/** `address.city`, `["a.b", "c"]`, `from:country`, or `@key`. */
export function readPlace(text: string): Place {
  const key = keys.get(text);
  if (key !== undefined) return { side: key, path: [] };
  const [, side, rest = text] = /^(from|to):(.*)$/s.exec(text) ?? [];
  const path: unknown = rest.startsWith("[") ? parseJson(rest, { what: "the path" }) : rest.split(".");
  return { side: side === "from" || side === "to" ? side : "value", path: path as string[] };
}

/** A commit's number, or a time. */
export function readMoment(text: string): AsOf {
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** A key of an entity, or `from to [instance]` of a relation. */
export function readKey(type: AnyRecordType, words: readonly string[]): string | RelationKey {
  const [first = "", second, instance] = words;
  if (type.kind === "entity") {
    if (words.length !== 1) throw invalid(`"${type.name}" is an entity: give one key`);
    return first;
  }
  if (second === undefined || words.length > 3)
    throw invalid(`"${type.name}" is a relation: give from, to and, if it has one, its instance`);
  return instance === undefined ? { from: first, to: second } : { from: first, to: second, instance };
}

export function showKey(key: string | RelationKey): string {
  if (typeof key === "string") return plainCell(key);
  const instance = key.instance === undefined || key.instance === "" ? "" : ` (${key.instance})`;
  return plainCell(`${key.from} → ${key.to}${instance}`);
}

export function entryTable(items: readonly Entry[]): Promise<string> {
  return showTable(
    ["key", "revision", "commit", "document"],
    items.map(({ key, revision, commit, value }) => [
      showKey(key),
      String(revision),
      String(commit),
      plainCell(JSON.stringify(value), 80),
    ]),
  );
}
