// Names that this process begins or ceases to run while its workers work: those of apps, which come and go.
import { invalid } from "../core/error.ts";
import { rawSql, sql, type Sql } from "../storage/sql.ts";
import { anyOf, eachRow, greatest } from "../storage/word.ts";
import type { AnyJob } from "./define.ts";
import { definitionColumns, toDefinitionRow } from "./definition.ts";
import type { Engine } from "./engine.ts";

const heard = new WeakMap<Engine["definitions"], Set<() => Promise<void>>>();

/** Calls back when the names have changed, until the function that it returns is called. */
export function onHosting({ definitions }: Pick<Engine, "definitions">, hear: () => Promise<void>): () => void {
  let ears = heard.get(definitions);
  if (ears === undefined) heard.set(definitions, (ears = new Set()));
  ears.add(hear);
  return () => ears.delete(hear);
}

/** From now on they are run here. A name that is taken is refused, and then none of them is. */
export async function hostJobs(engine: Engine, jobs: readonly AnyJob[]): Promise<void> {
  const taken = jobs.find(({ name }) => engine.definitions.has(name));
  if (taken !== undefined) throw invalid(`two jobs of this process are named "${taken.name}": rename one`);
  for (const each of jobs) engine.definitions.set(each.name, each);
  if (jobs.length === 0) return;
  await writeDefinitions(engine, jobs);
  await tellAll(engine);
}

/** They are claimed no more. What runs goes on to its end; what waits waits for another process, and says so. */
export async function ceaseToHost(engine: Engine, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  for (const name of names) engine.definitions.delete(name);
  await tellAll(engine);
  const { seq } = engine.session();
  await engine.store.write((tx) =>
    tx.run(sql`delete from daybook_session_host where session_seq = ${seq} and name ${anyOf("text", names)}`),
  );
}

async function tellAll({ definitions }: Pick<Engine, "definitions">): Promise<void> {
  for (const hear of heard.get(definitions) ?? []) await hear();
}

const columns = {
  ...definitionColumns,
  hosted_at: "integer",
  updated_at: "integer",
  session_seq: "integer",
} as const;
const list = (names: readonly string[], of = ""): Sql => rawSql(names.map((name) => of + name).join(", "));
const settings = Object.keys(definitionColumns).filter((name) => name !== "name");
const replaced = rawSql([...settings, "session_seq"].map((name) => `${name} = excluded.${name}`).join(", "));

/** Whoever hosts definitions writes their settings to the book, if they are new or have changed. The last process that begins
 *  to host a name wins, as the last deployment of a program does. */
export async function writeDefinitions(engine: Engine, definitions: Iterable<AnyJob>): Promise<void> {
  // Jobs that only their room makes are nobody's to enqueue. Two processes that start at once lock them in one order.
  const rows = [...definitions]
    .filter(({ builtIn }) => builtIn?.byHand === undefined)
    .map(toDefinitionRow)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (rows.length === 0) return;
  await engine.store.write((tx) => {
    const written = { hosted_at: tx.now, updated_at: tx.now, session_seq: engine.session().seq };
    const full = rows.map((row) => ({ ...row, ...written }));
    // The clock of the last process may be behind that of the first.
    return tx.run(sql`insert into daybook_definition as definition (${list(Object.keys(columns))}) ${eachRow(columns, full)}
      on conflict (name) do update set ${replaced}, updated_at = ${greatest}(definition.hosted_at, excluded.updated_at)
      where (${list(settings, "definition.")}) is distinct from (${list(settings, "excluded.")})`);
  });
}
