// How a person reads the keys of records, and what changed.
import type { Entry, RelationKey } from "../../index.ts";
import { isObject } from "../../core/json.ts";
import { table, type Part } from "../shown.ts";

export function keyText(key: string | RelationKey): string {
  if (typeof key === "string") return key;
  const instance = key.instance === undefined || key.instance === "" ? "" : ` (${key.instance})`;
  return `${key.from} → ${key.to}${instance}`;
}

/** How a list shows records. */
export const recordColumns = {
  key: (entry: Entry) => keyText(entry.key),
  revision: (entry: Entry) => entry.revision,
  commit: (entry: Entry) => entry.commit,
  document: (entry: Entry) => JSON.stringify(entry.value),
};

type Change = {
  readonly kind: string;
  readonly type: string;
  readonly key: string | RelationKey;
  readonly before: unknown;
  readonly after: unknown;
};

type FieldChange = { readonly field: string | null; readonly before: unknown; readonly after: unknown };

/** One line for each field that changed; a record that was made or deleted is one line with its document. */
export function changeTable(changes: readonly Change[], none: string): Part {
  const rows = changes.flatMap((change) => fieldChanges(change).map((each) => ({ change, ...texts(each) })));
  type Row = (typeof rows)[number];
  const columns = {
    what: ({ change }: Row) => change.kind,
    type: ({ change }: Row) => change.type,
    key: ({ change }: Row) => keyText(change.key),
    field: ({ field }: Row) => field,
    before: ({ before }: Row) => before,
    after: ({ after }: Row) => after,
  };
  return table(rows, columns, { none, least: ["type"] });
}

function fieldChanges({ before, after }: Change): FieldChange[] {
  if (before === null || after === null)
    return [{ field: null, before: before ?? undefined, after: after ?? undefined }];
  return changesAt("", before, after);
}

/** Goes into objects, and into lists of one length; a change of anything else is told as a whole. */
function changesAt(field: string, before: unknown, after: unknown): FieldChange[] {
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => changesAt(pathTo(field, name), own(before, name), own(after, name)));
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((each, index) => changesAt(`${field}[${index}]`, each, after[index]));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ field, before, after }];
}

function own(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function pathTo(field: string, name: string): string {
  const plain = /^[^\s."[\]]+$/.test(name) ? name : JSON.stringify(name);
  return field === "" ? plain : `${field}.${plain}`;
}

type Texts = { readonly field: string | null; readonly before: string | null; readonly after: string | null };

function texts({ field, ...change }: FieldChange): Texts {
  const before = textOf(change.before);
  const after = textOf(change.after);
  if (before === null || after === null) return { field, before, after };
  const from = startOf(before, after);
  return { field, before: cutBefore(before, from), after: cutBefore(after, from) };
}

function textOf(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** A cut that fits a terminal would make two texts that begin alike the same. */
const alikeMax = 24;
const keptOfAlike = 8;

/** Where to begin two texts so that a reader sees how they differ. */
function startOf(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let alike = 0;
  while (alike < most && one[alike] === other[alike]) alike++;
  return alike > alikeMax ? alike - keptOfAlike : 0;
}

function cutBefore(text: string, from: number): string {
  return from === 0 ? text : `…${text.slice(from).toWellFormed()}`;
}
