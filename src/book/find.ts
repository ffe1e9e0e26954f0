// What an id, the beginning of one, or a name stands for: for a person who has it from a log line or a message. Each kind of thing is
// found by an index of its own, so a book of millions answers as fast as an empty one.
import { sinkPrefix } from "../calls/sink/broker.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { jobNow } from "../jobs/job.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { indexedBy, seekEach } from "../storage/word.ts";
import { onlyOwn } from "../telemetry/session.ts";

export type FoundKind =
  | ("job" | "run" | "event" | "call" | "group" | "template" | "schedule" | "listener" | "sink" | "dead-letter")
  | ("definition" | "queue" | "app" | "session" | "operation" | "record" | "commit");

export type Found = {
  readonly kind: FoundKind;
  /** What its own verbs are asked with: an id, a name, a key or a number. */
  readonly id: string;
  /** Of a record; null for everything else. */
  readonly type: string | null;
  /** What a person knows it by. */
  readonly title: string;
  readonly status: string | null;
  /** When it was made or happened; null where nobody wrote that down. */
  readonly at: number | null;
};

export type FoundPage = {
  /** What is meant exactly comes first, then the newest. */
  readonly items: readonly Found[];
  /** There may be more: give more of the id. */
  readonly more: boolean;
};

/** So much of an id is no accident. */
const beginningMin = 8;
const beginning = /^[0-9a-f]{8}[0-9a-f-]{0,27}$/i;

/** Who asks, and for what. `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export type Finding = { readonly tenant: string; readonly seenBy: string | null; readonly text: string };

export async function findAll(store: Store, asked: Finding): Promise<FoundPage> {
  const text = typeof asked.text === "string" ? asked.text.trim() : "";
  if (text === "") {
    throw invalid(
      `the text is ${quote(asked.text)}: give an id, at least ${beginningMin} characters of one, or a name`,
    );
  }
  const parts = [...byId({ ...asked, text }), ...byName({ ...asked, text })].map(
    (part) => sql`select * from (${part} limit ${limits.foundMax + 1}) as part`,
  );
  const rows = await store.readHeavy<Found & { exact: number }>(sql`select kind, id, type, title, status, at, exact
    from (${joinSql(parts, " union all ")}) as found
    order by exact desc, coalesce(at, 0) desc, kind, id limit ${limits.foundMax + 1}`);
  const items = rows.slice(0, limits.foundMax).map(({ exact: _exact, ...found }) => found);
  return { items, more: rows.length > limits.foundMax };
}

// Only ids of the engine's own are found by their beginning. Whatever the language of a PostgreSQL database sorts by, "g" comes after
// the digits of such an id.
function wantedIn(text: string): (id: string) => Sql {
  if (!beginning.test(text)) return (id) => sql`${rawSql(id)} = ${text}`;
  const lower = text.toLowerCase();
  return (id) => sql`${rawSql(id)} >= ${lower} and ${rawSql(id)} < ${`${lower}g`}
    and substr(${rawSql(id)}, 1, ${lower.length}) = ${lower}`;
}

function byId({ tenant, seenBy, text }: Finding): Sql[] {
  const wanted = wantedIn(text);
  const columns = (kind: FoundKind, id: string, [title, status, at]: Told, shown = id): Sql => sql`select
    '${rawSql(kind)}' as kind, ${rawSql(shown)} as id, cast(null as text) as type, ${rawSql(title)} as title,
    ${rawSql(status)} as status, ${rawSql(at)} as at, case when ${rawSql(id)} = ${text} then 1 else 0 end as exact`;
  const own = (kind: FoundKind, of: string, told: Told, shown?: string): Sql =>
    sql`${columns(kind, `${of}.id`, told, shown)} from daybook_${rawSql(of)} ${rawSql(of)}
      where ${rawSql(of)}.tenant_id = ${tenant} and ${wanted(`${of}.id`)} order by ${rawSql(of)}.id desc`;
  // These ids are the whole book's: those of other tenants stand between the tenant's own, so only so many are looked at.
  const ofAll = (table: string): Sql => sql`(select * from daybook_${rawSql(table)} where ${wanted("id")}
    order by id desc limit ${limits.foundLookedAtMax}) as looked`;
  const running = sql`line.status = 'running' and line.lane_seq = lane.seq`;
  return [
    sql`${columns("job", "job.id", ["job.name", "job.status", "job.created_at"])}
      from (select seq from ${ofAll("job")} where tenant_id = ${tenant} limit ${limits.foundMax + 1}) as which
      cross join ${jobNow} where job.seq = which.seq`,
    sql`${columns("run", "id", ["coalesce(registration, name)", "status", "started_at"])}
      from ${ofAll("run")} where tenant_id = ${tenant}`,
    sql`${columns("run", "line.run_id", ["job.name", "'running'", "line.started_at"])} from daybook_lane lane
      ${seekEach("line", running, indexedBy("jobs_running"))} join daybook_job job on job.seq = line.seq
      where lane.tenant_id = ${tenant} and ${wanted("line.run_id")}`,
    own("event", "event", ["event.topic", nothing, "event.published_at"]),
    own("call", "call", ["call.method || ' ' || call.host", "call.status", "call.submitted_at"]),
    own("group", "job_group", ["coalesce(job_group.name, job_group.mode)", "job_group.status", "job_group.created_at"]),
    own("template", "job_template", template, "job_template.name"),
    own("schedule", "schedule", schedule, "schedule.name"),
    own("dead-letter", "dead_letter", [
      "dead_letter.error_type || ': ' || dead_letter.error_message",
      "dead_letter.status",
      "dead_letter.failed_at",
    ]),
    sql`${columns("session", "session.id", [
      seenBy === null ? "session.host || ', ' || session.pid" : "'a process'",
      "session.status",
      "session.started_at",
    ])} from daybook_session session where ${wanted("session.id")} ${onlyOwn(seenBy)}`,
    sql`${columns("operation", "id", ["verb", "status", "started_at"])}
      from ${ofAll("operation")} where ${seenBy === null ? sql`true` : sql`tenant_id = ${seenBy}`}`,
  ];
}

/** The columns that say its title, its status and its time. */
type Told = readonly [title: string, status: string, at: string];

const nothing = "cast(null as text)";
const template: Told = [
  "job_template.job_name",
  "case when job_template.archived_at is null then null else 'archived' end",
  "job_template.created_at",
];
const schedule: Told = [
  "schedule.kind || ' ' || schedule.expression",
  `case when schedule.removed_at is not null then 'removed' when schedule.paused_at is not null then 'paused'
    when schedule.next_at is null then 'over' end`,
  "schedule.created_at",
];
const listener: Told = ["listener.topics", "listener.state", "listener.registered_at"];
const never = "cast(null as bigint)";

function byName({ tenant, seenBy, text }: Finding): Sql[] {
  const columns = (kind: FoundKind, [title, status, at]: Told, type = nothing): Sql => sql`select
    '${rawSql(kind)}' as kind, cast(${text} as text) as id, ${rawSql(type)} as type, ${rawSql(title)} as title,
    ${rawSql(status)} as status, ${rawSql(at)} as at, 1 as exact`;
  const named = (kind: FoundKind, of: string, told: Told, name = text): Sql => sql`${columns(kind, told)}
    from daybook_${rawSql(of)} ${rawSql(of)} where ${rawSql(of)}.tenant_id = ${tenant} and ${rawSql(of)}.name = ${name}`;
  const number = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  // What an app of another tenant registers is named after that tenant.
  const seen =
    seenBy === null ? sql`` : sql`and (app is null or substr(name, 1, ${tenant.length + 1}) = ${`${tenant}/`})`;
  const kept = (table: string, more = sql``): Sql => sql`exists (select 1 from daybook_${rawSql(table)} kept
    where kept.type_seq = record_type.seq and kept.tenant_id = ${tenant} and kept.key = ${text} ${more})`;
  const record = (
    status: string,
  ): Sql => sql`${columns("record", ["record_type.name", status, never], "record_type.name")}
    from daybook_record_type record_type where record_type.tenant_id = ${tenant}`;
  return [
    named("template", "job_template", template),
    named("schedule", "schedule", schedule),
    sql`${named("listener", "listener", listener)} and substr(listener.name, 1, ${sinkPrefix.length}) <> ${sinkPrefix}`,
    named("sink", "listener", listener, sinkPrefix + text),
    sql`${columns("definition", ["queue", nothing, "updated_at"])} from daybook_definition where name = ${text} ${seen}`,
    sql`${columns("queue", ["queue", "case when paused_at is null then null else 'paused' end", never])}
      from daybook_lane where tenant_id = ${tenant} and queue = ${text}`,
    sql`${columns("app", ["app_key", nothing, "max(changed_at)"])} from daybook_app_instance
      where tenant_id = ${tenant} and app_key = ${text} group by app_key`,
    sql`${record(nothing)} and ${kept("record")}`,
    sql`${record("'deleted'")} and not ${kept("record")} and ${kept("record_version", sql`and kept.ended = 'deleted'`)}`,
    sql`${columns("commit", ["coalesce(reason, actor, 'a commit')", nothing, "committed_at"])} from daybook_record_commit
      where tenant_id = ${tenant} and id = ${number}`,
  ];
}
