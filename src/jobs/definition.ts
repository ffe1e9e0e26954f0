// A definition as the book knows it: its settings, written down by the process that hosts it, so that a job can be made by its name
// alone, from a shell or from another program, as the program that runs it would make it.
import { rememberFor } from "../core/remember.ts";
import type { Backoff } from "../core/retry.ts";
import { standardSchema, jsonSchemaOf } from "../core/standard-schema.ts";
import { durationMs } from "../core/duration.ts";
import { toJson } from "../core/json.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import { anyOf, greatest, indexedBy } from "../storage/word.ts";
import { defineJob, type AnyJob } from "./define.ts";
import type { Engine } from "./engine.ts";
import { endedStatuses } from "./job.ts";
import { keptNotice } from "./notice.ts";
import { invalid } from "../core/error.ts";

type DefinitionRow = ReturnType<typeof toRow> & { readonly notify: string | null };

/** How a statement is read: by the transaction that its caller is in, or by the book. */
export type ReadRows = <R>(statement: Sql) => Awaitable<R[]>;

/** What the book says of a definition that was found by its name alone. */
export type ByName = {
  readonly warning: string | null;
  /** False when a limit of it needs a key that only its program can make: such a limit is not counted. */
  readonly countable: boolean;
};

/** The definition of that name: this process's own, or else the book's. */
export function knownJob(
  { definitions, store }: Pick<Engine, "definitions" | "store">,
  name: string,
  read: ReadRows = (statement) => store.read(statement),
): Awaitable<AnyJob | undefined> {
  return definitions.get(name) ?? findDefinition(read, name);
}

export async function findDefinition(read: ReadRows, name: string): Promise<AnyJob | undefined> {
  const [row] = await read<DefinitionRow>(sql`select * from daybook_definition where name = ${name}`);
  return row === undefined ? undefined : toDefinition(row);
}

/** One that a remote worker of this tenant, which is attached now, runs. It says no settings, so the defaults are meant. */
export async function findRemote(read: ReadRows, name: string, tenant: string): Promise<AnyJob | undefined> {
  const [host] = await read(sql`select host.name from daybook_session session ${indexedBy("sessions_running")}
    join daybook_session_host host on host.session_seq = session.seq
    where session.status = 'running' and session.kind = 'remote' and session.tenant_id = ${tenant} and host.name = ${name}
    limit 1`);
  if (host === undefined) return undefined;
  return { ...defineJob(name, { run: () => undefined }), byName: { warning: null, countable: true } };
}

// So many names are looked through for the one that was meant.
const namesReadMax = 1000;

export async function storedNames(read: ReadRows): Promise<string[]> {
  const rows = await read<DefinitionRow>(sql`select name from daybook_definition order by name limit ${namesReadMax}`);
  return rows.map(({ name }) => name);
}

/** The defaults stand in for a name that was never hosted, and the answer says so. */
export function neverHosted(name: string): AnyJob {
  const byName = { warning: neverHostedWarning(name), countable: true };
  return { ...defineJob(name, { run: () => undefined }), byName };
}

export function neverHostedWarning(name: string): string {
  return `job "${name}" was never hosted by this book: it waits for a program that lists it`;
}

function toDefinition(row: DefinitionRow): AnyJob {
  const { name, queue, priority, attempts, losses, rate_max: max, rate_ms: per, app, instance, registration } = row;
  const uncounted = [...(row.key_concurrency === null ? [] : ["limit"]), ...(row.rate_by_key === 1 ? ["rate"] : [])];
  const why = "goes by a key that only its program can make of the params: this job is not counted there";
  const warning = uncounted.length === 0 ? null : `the ${uncounted.join(" and the ")} of job "${name}" ${why}`;
  const schema = row.params_schema === null ? {} : { params: standardSchema(JSON.parse(row.params_schema)) as never };
  const rate = max === null || per === null || row.rate_by_key === 1 ? {} : { rate: { max, per } };
  return {
    ...defineJob(name, { queue, priority, attempts, losses, ...schema, ...rate, run: () => undefined }),
    backoff: row.backoff === null ? undefined : (JSON.parse(row.backoff) as Backoff),
    timeoutMs: row.timeout_ms,
    concurrency: row.concurrency,
    byName: { warning, countable: uncounted.length === 0 },
    ...(app === null || instance === null || registration === null ? {} : { owner: { app, instance, registration } }),
  };
}

function toRow(definition: AnyJob) {
  const { name, queue, priority, attempts, backoff, timeoutMs, losses, concurrency, options, owner } = definition;
  const { limit, rate } = options;
  return {
    name,
    queue,
    priority,
    attempts,
    losses,
    concurrency,
    backoff: backoff === undefined ? null : toJson(backoff, { what: "backoff" }),
    timeout_ms: timeoutMs,
    // How many of one key may run; the key is a function of the params, and so only the program can make it.
    key_concurrency: limit?.concurrency ?? null,
    rate_max: rate?.max ?? null,
    rate_ms: rate === undefined ? null : durationMs(rate.per, "rate per"),
    // 1 when the rate counts each key apart, which again only the program can make.
    rate_by_key: rate?.key === undefined ? 0 : 1,
    params_schema: schemaText(options.params),
    app: owner?.app ?? null,
    instance: owner?.instance ?? null,
    registration: owner?.registration ?? null,
  };
}

const schemaBytesMax = 65_536;

// One that cannot be written down, or is too large, is left to the run.
function schemaText(schema: unknown): string | null {
  const written = jsonSchemaOf(schema, "input");
  try {
    return written === undefined ? null : toJson(written, { what: "params schema", bytesMax: schemaBytesMax });
  } catch {
    return null;
  }
}

// Names that this process begins or ceases to run while its workers work: those of apps, which come and go.
const listening = rememberFor((_definitions: Engine["definitions"]) => new Set<Hosting>());

/** It is told the names that are run here no more. */
type Hosting = (ceased: readonly string[]) => Promise<void>;

/** Calls back when the names have changed, until the function that it returns is called. */
export function onHosting({ definitions }: Pick<Engine, "definitions">, hear: Hosting): () => void {
  listening(definitions).add(hear);
  return () => listening(definitions).delete(hear);
}

/** From now on they are run here. A name that is taken is refused, and then none of them is. */
export async function hostJobs(engine: Engine, jobs: readonly AnyJob[]): Promise<void> {
  const taken = jobs.find(({ name }) => engine.definitions.has(name));
  if (taken !== undefined) throw invalid(`two jobs of this process are named "${taken.name}": rename one`);
  for (const each of jobs) engine.definitions.set(each.name, each);
  if (jobs.length === 0) return;
  await writeDefinitions(engine, jobs);
  await tellAll(engine, []);
}

/** They are claimed no more. What runs is asked to end, and is made again; what waits waits for another process, and says so. */
export async function ceaseToHost(engine: Engine, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  for (const name of names) engine.definitions.delete(name);
  await tellAll(engine, names);
  const { seq } = engine.session();
  await engine.store.write((tx) =>
    tx.run(sql`delete from daybook_session_host where session_seq = ${seq} and name ${anyOf("text", names)}`),
  );
}

async function tellAll({ definitions }: Pick<Engine, "definitions">, ceased: readonly string[]): Promise<void> {
  for (const hear of listening(definitions)) await hear(ceased);
}

/** A process that hosts definitions writes their settings to the book, if they are new or have changed. The last process that begins
 *  to host a name wins, as the last deployment of a program does. */
export async function writeDefinitions(engine: Engine, definitions: readonly AnyJob[]): Promise<void> {
  // Jobs that only their room makes are not for users to enqueue. Two processes that start at once lock them in one order.
  const rows = [...definitions]
    .filter(({ builtIn }) => builtIn?.byHand === undefined)
    .map((definition) => ({ definition, settings: toRow(definition) }))
    .toSorted((a, b) => (a.settings.name < b.settings.name ? -1 : 1));
  if (rows.length === 0) return;
  await engine.store.write(async (tx) => {
    const kept = await keptNotices(tx, definitions);
    let changed = false;
    for (const { definition, settings } of rows) {
      const notify = noticeOf(engine, definition, kept.get(settings.name) ?? null);
      const written = await writeRow(tx, { ...settings, notify }, engine.session().seq);
      changed ||= written > 0 && notify !== null;
    }
    if (changed) await engine.notices?.changed(tx);
  });
}

function noticeOf(ports: Pick<Engine, "notices">, { name, options }: AnyJob, had: string | null): string | null {
  const { notify } = options;
  if (notify === undefined) return null;
  return keptNotice(ports, notify, { ends: endedStatuses, what: `job "${name}"`, tenant: null, had });
}

/** What the book keeps of the notices of these definitions, by name. */
async function keptNotices(tx: Tx, definitions: readonly AnyJob[]): Promise<Map<string, string>> {
  const names = definitions.flatMap(({ name, options }) => (options.notify === undefined ? [] : [name]));
  if (names.length === 0) return new Map();
  const kept = await tx.all<{ name: string; notify: string }>(sql`select name, notify from daybook_definition
    where notify is not null and name ${anyOf("text", names)}`);
  return new Map(kept.map(({ name, notify }) => [name, notify]));
}

async function writeRow(tx: Tx, row: DefinitionRow, session: number): Promise<number> {
  const names = Object.keys(row);
  const list = (of: string): Sql => rawSql(names.map((name) => of + name).join(", "));
  const cells = joinSql(Object.values(row).map((cell) => sql`${cell}, `));
  const replaced = rawSql(names.map((name) => `${name} = excluded.${name}`).join(", "));
  // The clock of the last process may be behind that of the first.
  return tx.run(sql`insert into daybook_definition as definition (${list("")}, hosted_at, updated_at, session_seq)
    values (${cells} ${tx.now}, ${tx.now}, ${session})
    on conflict (name) do update set ${replaced}, session_seq = excluded.session_seq,
      updated_at = ${greatest}(definition.hosted_at, excluded.updated_at)
    where (${list("definition.")}) is distinct from (${list("excluded.")})`);
}
