// The series of runs: each is found by its names, or made. The caller holds the mark.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { eachRow, rowSet } from "../../storage/word.ts";
import { inParts } from "./parts.ts";
import type { SeriesKey } from "./read-slice.ts";

const columns = {
  ...({ tenant_id: "text", kind: "text", name: "text", app: "text", instance: "integer" } as const),
};

/** The name of the series in which all runs of a tenant and kind are counted together. */
export const wholeName = "";

export function wholeOf({ tenant_id, kind }: SeriesKey): SeriesKey {
  return { tenant_id, kind, name: wholeName, app: "", instance: -1 };
}

/** The numbers of the series of these, in their order. */
export async function seriesOf(tx: Tx, keys: readonly SeriesKey[]): Promise<number[]> {
  const wanted = new Map(keys.map((key) => [idOf(key), pick(key)]));
  const found = new Map<string, number>();
  for (const part of inParts([...wanted.values()])) {
    for (const row of await find(tx, part)) found.set(idOf(row), row.seq);
    const missing = part.filter((key) => !found.has(idOf(key)));
    if (missing.length === 0) continue;
    await tx.run(
      sql`insert into daybook_run_series (tenant_id, kind, name, app, instance) ${eachRow(columns, missing)}`,
    );
    for (const row of await find(tx, missing)) found.set(idOf(row), row.seq);
  }
  return keys.map((key) => found.get(idOf(key)) ?? 0);
}

function find(tx: Tx, keys: readonly SeriesKey[]) {
  return tx.all<SeriesKey & { seq: number }>(sql`select run_series.* from ${rowSet("v", columns, keys)}
    cross join daybook_run_series run_series where run_series.tenant_id = v.tenant_id and run_series.kind = v.kind
      and run_series.name = v.name and run_series.app = v.app and run_series.instance = v.instance`);
}

function pick({ tenant_id, kind, name, app, instance }: SeriesKey): SeriesKey {
  return { tenant_id, kind, name, app, instance };
}

function idOf({ tenant_id, kind, name, app, instance }: SeriesKey): string {
  return JSON.stringify([tenant_id, kind, name, app, instance]);
}
