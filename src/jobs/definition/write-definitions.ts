// Whoever hosts definitions writes their settings to the book. The last process that begins to host a name wins, as the last
// deployment of a program does.
import { rawSql, sql } from "../../storage/sql.ts";
import { anyOf, eachRow, greatest } from "../../storage/word.ts";
import type { AnyJob } from "../define.ts";
import type { Engine } from "../engine.ts";
import { definitionColumns, selectDefinitions, toDefinitionRow, type DefinitionRow } from "./stored-definition.ts";

const names = Object.keys(definitionColumns) as (keyof DefinitionRow)[];
const settings = names.filter((name) => name !== "name");
const replaced = [...settings, "session_seq"].map((name) => `${name} = excluded.${name}`).join(", ");

/** Writes those that are new or have changed; most starts of a program find nothing to write. */
export async function writeDefinitions(engine: Engine, definitions: Iterable<AnyJob>): Promise<void> {
  // Jobs that only their room makes are nobody's to enqueue.
  const rows = [...definitions].filter(({ builtIn }) => builtIn?.byHand === undefined).map(toDefinitionRow);
  if (rows.length === 0) return;
  const known = await engine.store.read<DefinitionRow>(
    sql`${selectDefinitions} where name ${anyOf(
      "text",
      rows.map(({ name }) => name),
    )}`,
  );
  const before = new Map(known.map((row) => [row.name, row]));
  const changed = rows.filter((row) => !isSame(row, before.get(row.name)));
  if (changed.length === 0) return;
  // Two processes that start at once lock them in one order.
  const sorted = changed.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const columns = {
    ...definitionColumns,
    hosted_at: "integer",
    updated_at: "integer",
    session_seq: "integer",
  } as const;
  // The clock of the last process may be behind that of the first.
  await engine.store.write((tx) => {
    const written = { hosted_at: tx.now, updated_at: tx.now, session_seq: engine.session().seq };
    return tx.run(sql`insert into daybook_definition (${rawSql(Object.keys(columns).join(", "))})
      ${eachRow(
        columns,
        sorted.map((row) => ({ ...row, ...written })),
      )}
      on conflict (name) do update set ${rawSql(replaced)},
        updated_at = ${greatest}(daybook_definition.hosted_at, excluded.updated_at)`);
  });
}

function isSame(row: DefinitionRow, before: DefinitionRow | undefined): boolean {
  return before !== undefined && names.every((name) => row[name] === before[name]);
}
