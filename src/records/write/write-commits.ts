// Writes commits and their versions. The engines want different statements, which stand side by side: on SQLite a statement
// costs microseconds and nobody else writes; on PostgreSQL it costs a round trip during which the tenant's head is held.
import { limits } from "../../core/limits.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { insertInto, rowSet } from "../../storage/word.ts";
import type { ChangeKind } from "../room.ts";

/** The columns that a live row hands on to its closed version. */
const versionColumns =
  rawSql(`tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body,
  revision, schema_version, from_commit`);

const rowColumns = {
  type_seq: "integer",
  key: "text",
  from_type_seq: "integer",
  from_key: "text",
  to_type_seq: "integer",
  to_key: "text",
  instance_key: "text",
  body: "text",
  revision: "integer",
  schema_version: "integer",
} as const;

/** One change, ready for the tables. */
export type FlushRow = Readonly<Record<keyof typeof rowColumns, string | number | null>> & {
  readonly kind: ChangeKind;
  /** The live row; null while there is none. */
  readonly seq: number | null;
  readonly revision: number;
};

export type FlushCommit = Readonly<Record<"actor" | "reason" | "run_id" | "root_run_id", string | null>> & {
  readonly metadata: string;
  readonly rows: readonly FlushRow[];
};

/** The number of the first commit, and how many live rows were closed. */
type Flushed = { readonly first: number; readonly closed: number };

/** One prepared statement after the other. */
export async function writeOnSqlite(tx: Tx, commits: readonly FlushCommit[]): Promise<Flushed> {
  let [last, closed] = [0, 0];
  for (const commit of commits) {
    const done = await writeOne(tx, commit);
    last = done.commit;
    closed += done.closed;
  }
  return { first: last - commits.length + 1, closed };
}

type Head = { commit: number; at: number; from: number };

async function writeOne(tx: Tx, made: FlushCommit): Promise<{ commit: number; closed: number }> {
  // A small step back of the clock is smoothed here as it is for transactions (core/clock.ts).
  const wasSetBack = sql`committed_at > excluded.committed_at + ${rawSql(String(limits.clockSmoothMs))}`;
  const head = await tx.get<Head>(sql`
    insert into daybook_record_head (tenant_id, commit_id, committed_at, clock_from) values (${tx.tenant}, 1, ${tx.now}, 1)
    on conflict (tenant_id) do update set commit_id = commit_id + 1,
      committed_at = case when ${wasSetBack} then excluded.committed_at else max(committed_at, excluded.committed_at) end,
      clock_from = case when ${wasSetBack} then commit_id + 1 else clock_from end
    returning commit_id as "commit", committed_at as at, clock_from as "from"`);
  const { commit, at, from } = head as Head;
  const { actor, reason, metadata, run_id: run, root_run_id: root, rows } = made;
  await tx.run(sql`insert into daybook_record_commit
      (tenant_id, id, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id)
    values (${tx.tenant}, ${commit}, ${at}, ${from}, ${rows.length}, ${actor}, ${reason}, ${metadata}, ${run}, ${root})`);
  const closed = await closeVersions(tx, rows, commit);
  const fresh = rows.filter((row) => row.kind === "created");
  if (fresh.length > 0) {
    const columns = { ...rowColumns, tenant_id: "text", from_commit: "integer" } as const;
    const records = fresh.map((row) => ({ ...row, tenant_id: tx.tenant, from_commit: commit }));
    await tx.run(insertInto("daybook_record", columns, records));
  }
  const changes = rows.map((row, position) => ({ ...row, tenant_id: tx.tenant, commit_id: commit, position }));
  await tx.run(insertInto("daybook_record_change", changeColumns, changes));
  return { commit, closed };
}

const changeColumns = {
  tenant_id: "text",
  commit_id: "integer",
  position: "integer",
  type_seq: "integer",
  key: "text",
  kind: "text",
  revision: "integer",
} as const;

async function closeVersions(tx: Tx, rows: readonly FlushRow[], commit: number): Promise<number> {
  let closed = 0;
  for (const { seq, kind, body, revision, schema_version: schema } of rows) {
    if (kind === "created") continue;
    closed += await tx.run(sql`insert into daybook_record_version (${versionColumns}, to_commit, ended)
      select ${versionColumns}, ${commit}, ${kind === "deleted" ? "deleted" : "replaced"} from daybook_record where seq = ${seq}`);
    await tx.run(
      kind === "deleted"
        ? sql`delete from daybook_record where seq = ${seq}`
        : sql`update daybook_record set body = ${body}, revision = ${revision}, schema_version = ${schema},
            from_commit = ${commit} where seq = ${seq}`,
    );
  }
  return closed;
}

/** One statement for all commits. Its parts all read what was there before it. */
export async function writeOnPostgres(tx: Tx, commits: readonly FlushCommit[]): Promise<Flushed> {
  const incoming = commits.flatMap(({ rows }, index) => rows.map((row, position) => ({ ...row, index, position })));
  const made = commits.map(({ rows, ...commit }, index) => ({ ...commit, index, changes: rows.length }));
  // As on SQLite; besides, a transaction that waited for another one's commit has the earlier time although no clock was set.
  const wasSetBack = sql`head.committed_at > excluded.committed_at + ${rawSql(String(limits.busyMsMax))}`;
  const flushed = await tx.get<Flushed>(sql`
    with head as (
      insert into daybook_record_head as head (tenant_id, commit_id, committed_at, clock_from)
      values (${tx.tenant}, ${commits.length}, ${tx.now}, 1)
      on conflict (tenant_id) do update set commit_id = head.commit_id + excluded.commit_id,
        committed_at = case when ${wasSetBack} then excluded.committed_at
          else greatest(head.committed_at, excluded.committed_at) end,
        clock_from = case when ${wasSetBack} then head.commit_id + 1 else head.clock_from end
      returning tenant_id, commit_id - ${commits.length - 1} as first, committed_at, clock_from),
    incoming as materialized (select rows.*, head.first + rows.index as commit_id, head.tenant_id
      from ${rowSet("rows", incomingColumns, incoming)}, head),
    made as (insert into daybook_record_commit
        (tenant_id, id, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id)
      select tenant_id, first + index, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id
      from ${rowSet("made", commitColumns, made)}, head),
    closing as (select record.*, incoming.commit_id as to_commit,
        case incoming.kind when 'deleted' then 'deleted' else 'replaced' end as ended
      from incoming join daybook_record record on record.seq = incoming.seq),
    closed as (insert into daybook_record_version (${versionColumns}, to_commit, ended)
      select ${versionColumns}, to_commit, ended from closing returning 1),
    gone as (delete from daybook_record as record using incoming where record.seq = incoming.seq and incoming.kind = 'deleted'),
    changed as (update daybook_record as record set body = incoming.body::jsonb, revision = incoming.revision,
        schema_version = incoming.schema_version, from_commit = incoming.commit_id
      from incoming where record.seq = incoming.seq and incoming.kind = 'updated'),
    fresh as (insert into daybook_record (${versionColumns})
      select tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body::jsonb,
        revision, schema_version, commit_id
      from incoming where incoming.kind = 'created'),
    logged as (insert into daybook_record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
      select tenant_id, commit_id, position, type_seq, key, kind, revision from incoming)
    select first, (select count(*) from closed) as closed from head`);
  return flushed as Flushed;
}

const incomingColumns = { ...rowColumns, kind: "text", seq: "integer", index: "integer", position: "integer" } as const;

const commitColumns = {
  index: "integer",
  changes: "integer",
  actor: "text",
  reason: "text",
  metadata: "text",
  run_id: "text",
  root_run_id: "text",
} as const;
