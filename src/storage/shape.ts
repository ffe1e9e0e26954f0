// Rows as their reader sees them. The select names the fields: `as "run.error.type"` is a field of a field, whose object is null
// when the first of its columns is; `as "params json"` is parsed, and `as "truncated flag"` is true or false.
import type { Value } from "./sql.ts";
import type { Row } from "./store.ts";

type Shaped = { [field: string]: unknown };
type Column = { readonly name: string; readonly path: readonly string[]; readonly as: string | undefined };

export function shape<Item>(rows: readonly Row[]): Item[] {
  const columns = Object.keys(rows[0] ?? {}).map((name): Column => {
    const [path = "", as] = name.split(" ");
    return { name, path: path.split("."), as };
  });
  return rows.map((row) => {
    const item: Shaped = {};
    for (const { name, path, as } of columns) put(item, path, valueOf(row[name] ?? null, as));
    return item as Item;
  });
}

function valueOf(value: Value, as: string | undefined): unknown {
  if (as === "json") return value === null ? null : JSON.parse(value as string);
  return as === "flag" ? value === 1 : value;
}

function put(into: Shaped, [field = "", ...inner]: readonly string[], value: unknown): void {
  if (inner.length === 0) into[field] = value;
  else if (into[field] === undefined) into[field] = value === null ? null : {};
  if (inner.length > 0 && into[field] !== null) put(into[field] as Shaped, inner, value);
}
