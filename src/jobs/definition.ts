// A definition as the book knows it: its settings, written down by whoever hosts it, so that a job can be made by its name
// alone, from a shell or from another program, as the program that runs it would make it.
import type { Backoff } from "../core/backoff.ts";
import { standardSchema } from "../core/json-schema.ts";
import { jsonSchemaOf } from "../core/standard-schema.ts";
import { durationMs } from "../core/duration.ts";
import { toJson } from "../core/json.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Awaitable } from "../storage/store.ts";
import type { Nullable, RowOf } from "../storage/word.ts";
import { defineJob, type AnyJob } from "./define.ts";
import type { Engine } from "./engine.ts";

export const definitionColumns = {
  name: "text",
  queue: "text",
  priority: "integer",
  attempts: "integer",
  backoff: "text",
  timeout_ms: "integer",
  losses: "integer",
  concurrency: "integer",
  // How many of one key may run; the key is a function of the params, and so only the program can make it.
  key_concurrency: "integer",
  rate_max: "integer",
  rate_ms: "integer",
  // 1 when the rate counts each key apart, which again only the program can make.
  rate_by_key: "integer",
  params_schema: "text",
  app: "text",
  instance: "integer",
  registration: "text",
} as const;

type Cells = RowOf<typeof definitionColumns>;
type Always = "name" | "queue" | "priority" | "attempts" | "losses" | "rate_by_key";
type DefinitionRow = Readonly<Pick<Cells, Always> & Nullable<Omit<Cells, Always>>>;

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

// So many names are looked through for the one that was meant.
const namesReadMax = 1000;

export async function storedNames(read: ReadRows): Promise<string[]> {
  const rows = await read<Cells>(sql`select name from daybook_definition order by name limit ${namesReadMax}`);
  return rows.map(({ name }) => name);
}

/** The defaults stand in for a name that nobody has hosted, and the answer says so. */
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

export function toDefinitionRow(definition: AnyJob): DefinitionRow {
  const { name, queue, priority, attempts, backoff, timeoutMs, losses, concurrency, options, owner } = definition;
  const { limit, rate } = options;
  return {
    ...{ name, queue, priority, attempts, losses, concurrency },
    backoff: backoff === undefined ? null : toJson(backoff, { what: "backoff" }),
    timeout_ms: timeoutMs,
    key_concurrency: limit?.concurrency ?? null,
    rate_max: rate?.max ?? null,
    rate_ms: rate === undefined ? null : durationMs(rate.per, "rate per"),
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
