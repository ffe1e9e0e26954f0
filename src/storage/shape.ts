// Rows as their reader sees them. The select names the fields: `as "run.error.type"` is a field of a field, whose object is null
// when the first of its columns is, unless `as "run.error object"` comes before it; `as "params json"` is parsed, `as "truncated flag"` is
// true or false, `as "tags lines"` is a list of lines, and `as ".seq"` is the cursor of a page, and no field.
import { compileFunction } from "node:vm";
import { cutPage, type Page } from "../core/page.ts";
import { remember } from "../core/remember.ts";
import { makeEach } from "./make-each.ts";
import type { Value } from "./sql.ts";
import type { Row, Some } from "./store.ts";

export function shape<Item>(rows: readonly Row[]): Item[] {
  const [first] = rows;
  if (first === undefined) return [];
  const make = makerOf(Object.keys(first).join("\n"));
  return rows.map((row) => make(row, valueAs) as Item);
}

/** The same for rows that hold documents: the loop has turns between them. */
export async function shapeEach<Item>(rows: readonly Row[]): Promise<Item[]> {
  const [first, other] = rows;
  if (first === undefined || other === undefined) return shape(rows);
  const make = makerOf(Object.keys(first).join("\n"));
  return makeEach(rows, (row) => make(row, valueAs) as Item);
}

/** A page of `limit + 1` such rows, or of those that fit. */
export async function shapePage<Item>({ rows, more }: Some<Row>, limit: number): Promise<Page<Item>> {
  const cursorOf = (row: Row): number => row[".seq"] as number;
  const { items, next } = cutPage(rows, limit, cursorOf, undefined, more || rows.length > limit);
  return { items: await shapeEach<Item>(items), next };
}

type Make = (row: Row, as: typeof valueAs) => unknown;

const valueAs = {
  json: (value: Value): unknown => (value === null ? null : JSON.parse(value as string)),
  lines: (value: Value): string[] => (value === null ? [] : (value as string).split("\n")),
  flag: (value: Value): boolean => value === 1,
};

/** A field is the text of what gives its value, or the fields of an object. */
type Fields = Map<string, string | Fields>;

/** The first field of an object that is never null. It is left out, and a name is never empty. */
const always = "";

// What is made of a row is compiled once for its columns, like the row itself (decision 017).
const makerOf = remember((columns: string): Make => {
  const fields: Fields = new Map();
  for (const column of columns.split("\n")) {
    if (column.startsWith(".")) continue;
    const [path = "", as] = column.split(" ");
    const value = `(row[${JSON.stringify(column)}] ?? null)`;
    if (as === "object") put(fields, [...path.split("."), always], "true");
    else put(fields, path.split("."), as !== undefined && Object.hasOwn(valueAs, as) ? `as.${as}${value}` : value);
  }
  return compileFunction(`return ${literalOf(fields)};`, ["row", "as"]) as Make;
});

function put(fields: Fields, [name = "", ...inside]: readonly string[], value: string): void {
  if (inside.length === 0) return void fields.set(name, value);
  const known = fields.get(name);
  const into: Fields = known instanceof Map ? known : new Map();
  fields.set(name, into);
  put(into, inside, value);
}

function literalOf(fields: Fields): string {
  // A quoted name in brackets is a key whatever it says: `__proto__` too.
  const members = [...fields]
    .filter(([name]) => name !== always)
    .map(([name, value]) => `[${JSON.stringify(name)}]: ${memberOf(value)}`);
  return `{ ${members.join(", ")} }`;
}

function memberOf(value: string | Fields): string {
  return typeof value === "string" ? value : `(${firstOf(value)} === null ? null : ${literalOf(value)})`;
}

function firstOf(fields: Fields): string {
  const [first = "null"] = fields.values();
  return typeof first === "string" ? first : firstOf(first);
}
