// Names that this process begins or ceases to run while its workers work: those of apps, which come and go.
import { sql } from "../storage/sql.ts";
import { anyOf } from "../storage/word.ts";
import { invalid } from "../core/error.ts";
import type { AnyJob } from "./define.ts";
import { writeDefinitions } from "./definition/write-definitions.ts";
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
