// What can be asked for by its name, for forms and for people who did not write the program: the jobs that the book knows, with their
// settings and what they take, and the events that this process declares.
import { checkName } from "../core/name.ts";
import { checkLimit, cutPage, notACursor, readCursor, writeCursor, type Page, type PageOptions } from "../core/page.ts";
import { jsonSchemaOf } from "../core/standard-schema.ts";
import type { Backoff } from "../core/retry.ts";
import { checkWord, noSuch, refuseUnknown } from "../core/suggest.ts";
import type { AnyEvent } from "../events/define.ts";
import { shownNotice, type ShownNotice } from "../jobs/notice.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf, indexedBy, seekEach } from "../storage/word.ts";

export type DefinitionKind = "job" | "event";

export type DefinitionRecord = {
  readonly kind: DefinitionKind;
  /** The name of a job, the topic of an event. */
  readonly name: string;
  /** Whether it is known what the params or the payload must look like: `get` has it. */
  readonly hasSchema: boolean;
  /** What its program says of a job; null for an event, and for what a remote worker runs, which has the defaults. */
  readonly settings: JobSettings | null;
  /** Whether a running session runs the job; an event needs nobody. */
  readonly hosted: boolean;
  /** The sessions that do; null for a tenant, because they work for other tenants as well. */
  readonly sessionIds: readonly string[] | null;
  /** Which app registered it. */
  readonly app: { readonly key: string; readonly instance: number; readonly registration: string } | null;
  /** When it was first hosted, and when its settings last changed. */
  readonly hostedAt: number | null;
  readonly updatedAt: number | null;
  /** When a session that hosts it, or that was the last to write its settings, was last heard; null for a tenant. */
  readonly lastSeenAt: number | null;
};

export type DefinitionDetails = DefinitionRecord & {
  /** JSON Schema of the params or of the payload; null where the schema's library offers none. */
  readonly schema: Readonly<Record<string, unknown>> | null;
};

export type JobSettings = {
  readonly queue: string;
  readonly priority: number;
  readonly attempts: number;
  readonly losses: number;
  readonly backoff: Backoff | null;
  readonly timeoutMs: number | null;
  readonly concurrency: number | null;
  /** At once of one key, which the program makes of the params. */
  readonly concurrencyPerKey: number | null;
  /** `byKey`: each key is counted apart. */
  readonly rate: { readonly max: number; readonly perMs: number; readonly byKey: boolean } | null;
  readonly notify: ShownNotice | null;
};

export type DefinitionFilter = PageOptions & { readonly kind?: DefinitionKind };

export type Definitions = {
  /** Jobs by name, then events by topic.
   *
   *  ```ts
   *  for (const { kind, name, hosted } of (await book.definitions.list()).items) console.log(kind, name, hosted);
   *  ``` */
  list(filter?: DefinitionFilter): Promise<Page<DefinitionRecord>>;
  /** The job of this name, or the event of this topic. */
  get(name: string): Promise<DefinitionDetails>;
};

type Room = { readonly store: Store; readonly events: ReadonlyMap<string, AnyEvent> };

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function definitionReads({ store, events }: Room, tenant: string, seenBy: string | null): Definitions {
  const topics = [...events.values()].toSorted((one, other) => (one.topic < other.topic ? -1 : 1));
  const whose: Whose = { store, tenant, seenBy };
  return {
    async list(filter = {}) {
      refuseUnknown(filter, ["kind", "limit", "after"], "the list of definitions");
      const { kind } = filter;
      if (kind !== undefined) checkWord(kind, ["job", "event"], "kind");
      const limit = checkLimit(filter.limit);
      const after = readAfter(filter.after);
      const jobs =
        kind === "event" || after?.[0] === "event"
          ? []
          : await readJobs(whose, sql`name > ${after?.[1] ?? ""}`, limit + 1);
      const rest = kind === "job" ? [] : topics.filter(({ topic }) => after?.[0] !== "event" || topic > after[1]);
      const all = [...jobs, ...rest.slice(0, limit + 1).map(toEvent)];
      return cutPage(
        all,
        limit,
        ({ kind: of, name }) => writeCursor([of, name]),
        ({ schema: _schema, ...row }) => row,
      );
    },
    async get(name) {
      checkName(name, "the name of a definition");
      const [job] = await readJobs(whose, sql`name = ${name}`, 1);
      const event = events.get(name);
      const found = job ?? (event && toEvent(event));
      if (found !== undefined) return found;
      const names = (await readJobs(whose, sql`true`, 1000)).map((each) => each.name);
      throw noSuch("there is no job or event", name, [...names, ...events.keys()], { name });
    },
  };
}

function readAfter(cursor: string | undefined): readonly [DefinitionKind, string] | undefined {
  if (cursor === undefined) return undefined;
  const [kind, name] = readCursor(cursor);
  if ((kind !== "job" && kind !== "event") || typeof name !== "string") throw notACursor(cursor);
  return [kind, name];
}

function toEvent({ topic, schema }: AnyEvent): DefinitionDetails {
  const written = jsonSchemaOf(schema, "input") ?? null;
  const nobody = { settings: null, hosted: true, sessionIds: null, app: null, hostedAt: null, updatedAt: null };
  return { kind: "event", name: topic, hasSchema: written !== null, ...nobody, lastSeenAt: null, schema: written };
}

type Whose = { readonly store: Store; readonly tenant: string; readonly seenBy: string | null };

type Row = Readonly<Record<"known", string>> &
  Readonly<Record<"queue" | "backoff" | "params_schema" | "notify" | "app" | "registration", string | null>> &
  Readonly<Record<"priority" | "attempts" | "losses" | "rate_by_key" | "instance", number | null>> &
  Readonly<Record<"timeout_ms" | "concurrency" | "key_concurrency" | "rate_max" | "rate_ms", number | null>> &
  Readonly<Record<"hosted_at" | "updated_at" | "last_heartbeat_at", number | null>>;

/** Those that a process has hosted, and what remote workers of the tenant run now. */
async function readJobs(whose: Whose, which: Sql, limit: number): Promise<DefinitionDetails[]> {
  const { store, tenant, seenBy } = whose;
  // What an app of another tenant registers is named after that tenant.
  const seen =
    seenBy === null ? sql`` : sql`and (app is null or substr(name, 1, ${tenant.length + 1}) = ${`${tenant}/`})`;
  const rows = await store.readHeavy<Row>(sql`select names.name as known, definition.*, session.last_heartbeat_at
    from (select name from daybook_definition where ${which} ${seen}
      union select session_host.name from ${running(tenant)} and session.kind = 'remote' and ${which}) as names
    left join daybook_definition definition on definition.name = names.name
    left join daybook_session session on session.seq = definition.session_seq
    order by names.name limit ${limit}`);
  const hosts = await readHosts(
    whose,
    rows.map(({ known }) => known),
  );
  return rows.map((row) => toJob(row, hosts.get(row.known) ?? [], seenBy));
}

/** Running sessions with the names that they host, but for remote workers of other tenants. */
function running(tenant: string): Sql {
  return sql`daybook_session session ${indexedBy("sessions_running")}
    ${seekEach("session_host", sql`session_host.session_seq = session.seq`)}
    where session.status = 'running' and (session.tenant_id is null or session.tenant_id = ${tenant})`;
}

type Host = { readonly name: string; readonly id: string; readonly at: number };

async function readHosts({ store, tenant }: Whose, names: readonly string[]): Promise<Map<string, Host[]>> {
  const rows =
    await store.readHeavy<Host>(sql`select distinct session_host.name, session.id, session.last_heartbeat_at as at
    from ${running(tenant)} and session_host.name ${anyOf("text", names)} order by session.id`);
  return Map.groupBy(rows, ({ name }) => name);
}

function toJob(row: Row, hosts: readonly Host[], seenBy: string | null): DefinitionDetails {
  const { known: name, app: key, instance, registration, params_schema: schema } = row;
  const heard = [...hosts.map(({ at }) => at), row.last_heartbeat_at ?? []].flat();
  return {
    kind: "job",
    name,
    hasSchema: schema !== null,
    settings: toSettings(row),
    hosted: hosts.length > 0,
    sessionIds: seenBy === null ? hosts.map(({ id }) => id) : null,
    app: key === null || instance === null || registration === null ? null : { key, instance, registration },
    hostedAt: row.hosted_at,
    updatedAt: row.updated_at,
    lastSeenAt: seenBy === null && heard.length > 0 ? Math.max(...heard) : null,
    schema: schema === null ? null : (JSON.parse(schema) as Record<string, unknown>),
  };
}

function toSettings(row: Row): JobSettings | null {
  const { queue, priority, attempts, losses, rate_max: max, rate_ms: perMs } = row;
  if (queue === null || priority === null || attempts === null || losses === null) return null;
  return {
    queue,
    priority,
    attempts,
    losses,
    backoff: row.backoff === null ? null : (JSON.parse(row.backoff) as Backoff),
    timeoutMs: row.timeout_ms,
    concurrency: row.concurrency,
    concurrencyPerKey: row.key_concurrency,
    rate: max === null || perMs === null ? null : { max, perMs, byKey: row.rate_by_key === 1 },
    notify: shownNotice(row.notify),
  };
}
