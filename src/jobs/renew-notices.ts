// Writes anew what definitions, templates and groups of all tenants keep of their notices: for a change of keys.
import { rawSql, sql } from "../storage/sql.ts";
import type { Reader, Store } from "../storage/store.ts";

const places = [
  ["daybook_definition", "name"],
  ["daybook_job_template", "seq"],
  ["daybook_job_group", "seq"],
] as const;
const sliceMax = 100;

type Row = { readonly key: string | number; readonly notify: string };

/** What `renew` gives stands in for what is kept; undefined leaves it. Each slice is a transaction of its own, which locks rows in the
 *  order of lock-order.ts. */
export async function renewNotices(
  store: Store,
  reader: Reader,
  renew: (kept: string) => string | undefined,
): Promise<void> {
  for (const [table, key] of places) {
    const [from, by] = [rawSql(table), rawSql(key)];
    let rows: readonly Row[] = [];
    do {
      const last = rows.at(-1)?.key;
      const after = last === undefined ? sql`` : sql`and ${by} > ${last}`;
      rows = await reader.all<Row>(
        sql`select ${by} as key, notify from ${from} where notify is not null ${after} order by ${by} limit ${sliceMax}`,
      );
      const renewed = rows.flatMap((row) => {
        const text = renew(row.notify);
        return text === undefined ? [] : [{ row, text }];
      });
      if (renewed.length === 0) continue;
      await store.write(async (tx) => {
        // Only while it is as it was found: a program may have named another webhook meanwhile.
        for (const { row, text } of renewed) {
          await tx.run(sql`update ${from} set notify = ${text} where ${by} = ${row.key} and notify = ${row.notify}`);
        }
      });
    } while (rows.length === sliceMax);
  }
}
