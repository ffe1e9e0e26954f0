// The series of runs. Each is found by its names, or made. The caller holds the mark.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { insertInto, rowSet } from "../../storage/word.ts";
import type { SeriesKey } from "./slice.ts";

const columns = { tenant_id: "text", kind: "text", name: "text", app: "text", instance: "integer" } as const;

/** The name of the series that counts all runs of a tenant and kind together. */
export const wholeName = "";

export function wholeOf({ tenant_id, kind }: SeriesKey): SeriesKey {
  return { tenant_id, kind, name: wholeName, app: "", instance: -1 };
}

/** The app that a series belongs to, or null. */
export function appOf({
  app,
  instance,
}: Pick<SeriesKey, "app" | "instance">): { key: string; instance: number } | null {
  return app === "" ? null : { key: app, instance };
}

/** The number of each key's series, in the order of the keys. */
export async function seriesOf(tx: Tx, keys: readonly SeriesKey[]): Promise<number[]> {
  const wanted = new Map(keys.map((key) => [idOf(key), key]));
  const found = new Map<string, number>();
  for (const part of inParts([...wanted.values()])) {
    for (const row of await find(tx, part)) found.set(idOf(row), row.seq);
    const missing = part.filter((key) => !found.has(idOf(key)));
    if (missing.length === 0) continue;
    await tx.run(insertInto("daybook_run_series", columns, missing));
    for (const row of await find(tx, missing)) found.set(idOf(row), row.seq);
  }
  return keys.map((key) => found.get(idOf(key)) ?? 0);
}

function find(tx: Tx, keys: readonly SeriesKey[]) {
  return tx.all<SeriesKey & { seq: number }>(sql`select run_series.* from ${rowSet("v", columns, keys)}
    cross join daybook_run_series run_series where run_series.tenant_id = v.tenant_id and run_series.kind = v.kind
      and run_series.name = v.name and run_series.app = v.app and run_series.instance = v.instance`);
}

function idOf({ tenant_id, kind, name, app, instance }: SeriesKey): string {
  return JSON.stringify([tenant_id, kind, name, app, instance]);
}

const rowsMax = 1000;

/** Rows in parts that fit into one statement. */
export function* inParts<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let from = 0; from < rows.length; from += rowsMax) yield rows.slice(from, from + rowsMax);
}
