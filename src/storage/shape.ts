// Rows as their reader sees them. The select names the fields: `as "run.error.type"` is a field of a field, whose object is null
// when the first of its columns is; `as "params json"` is parsed, `as "truncated flag"` is true or false, `as "tags lines"` is a list of
// lines, and `as ".seq"` is the cursor of a page, and no field.
import { cutPage, type Page } from "../core/page.ts";
import type { Value } from "./sql.ts";
import type { Row } from "./store.ts";

type Shaped = { [field: string]: unknown };
type Column = { readonly name: string; readonly path: readonly string[]; readonly as: string | undefined };

export function shape<Item>(rows: readonly Row[]): Item[] {
  const names = Object.keys(rows[0] ?? {}).filter((name) => !name.startsWith("."));
  const columns = names.map((name): Column => {
    const [path = "", as] = name.split(" ");
    return { name, path: path.split("."), as };
  });
  return rows.map((row) => {
    const item: Shaped = {};
    for (const { name, path, as } of columns) put(item, path, valueOf(row[name] ?? null, as));
    return item as Item;
  });
}

/** A page of `limit + 1` such rows. */
export function shapePage<Item>(rows: readonly Row[], limit: number): Page<Item> {
  const { items, next } = cutPage(rows, limit, (row) => row[".seq"] as number);
  return { items: shape<Item>(items), next };
}

function valueOf(value: Value, as: string | undefined): unknown {
  if (as === "json") return value === null ? null : JSON.parse(value as string);
  if (as === "lines") return value === null ? [] : (value as string).split("\n");
  return as === "flag" ? value === 1 : value;
}

function put(item: Shaped, path: readonly string[], value: unknown): void {
  const last = path.length - 1;
  let into: Shaped | null = item;
  for (let depth = 0; depth < last && into !== null; depth++) {
    const field = path[depth] as string;
    if (into[field] === undefined) into[field] = value === null ? null : {};
    into = into[field] as Shaped | null;
  }
  if (into !== null) into[path[last] as string] = value;
}
