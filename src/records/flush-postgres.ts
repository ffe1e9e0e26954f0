// Commits on PostgreSQL: one statement for all of them, so that the tenant's head is held for one round trip and the end of
// the transaction. Its parts all read what was there before it.
import { limits } from "../core/limits.ts";
import { rawSql, sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { rowSet } from "../storage/word.ts";
import type { FlushCommit, Flushed } from "./flush.ts";

export async function flushPostgres(tx: Tx, commits: readonly FlushCommit[]): Promise<Flushed> {
  const incoming = commits.flatMap(({ rows }, place) => rows.map((row, position) => ({ ...row, place, position })));
  const made = commits.map(({ rows, ...commit }, place) => ({ ...commit, place, changes: rows.length }));
  const flushed = await tx.get<Flushed>(sql`
    with head as (
      insert into daybook_record_head as head (tenant_id, commit_id, committed_at, clock_from)
      values (${tx.tenant}, ${commits.length}, ${tx.now}, 1)
      on conflict (tenant_id) do update set commit_id = head.commit_id + excluded.commit_id,
        committed_at = case when ${wasSetBack} then excluded.committed_at
          else greatest(head.committed_at, excluded.committed_at) end,
        clock_from = case when ${wasSetBack} then head.commit_id + 1 else head.clock_from end
      returning tenant_id, commit_id - ${commits.length - 1} as first, committed_at, clock_from),
    incoming as materialized (select rows.*, head.first + rows.place as commit_id, head.tenant_id
      from ${rowSet("rows", rowColumns, incoming)}, head),
    made as (insert into daybook_record_commit
        (tenant_id, id, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id)
      select tenant_id, first + place, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id
      from ${rowSet("made", commitColumns, made)}, head),
    closed as (insert into daybook_record_version
        (tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body, revision,
         schema_version, from_commit, to_commit, ended)
      select record.tenant_id, record.type_seq, record.key, record.from_type_seq, record.from_key, record.to_type_seq,
        record.to_key, record.instance_key, record.body, record.revision, record.schema_version, record.from_commit,
        incoming.commit_id, case incoming.kind when 'deleted' then 'deleted' else 'replaced' end
      from incoming join daybook_record record on record.seq = incoming.seq returning 1),
    gone as (delete from daybook_record as record using incoming where record.seq = incoming.seq and incoming.kind = 'deleted'),
    changed as (update daybook_record as record set body = incoming.body::jsonb, revision = incoming.revision,
        schema_version = incoming.schema_version, from_commit = incoming.commit_id
      from incoming where record.seq = incoming.seq and incoming.kind = 'updated'),
    fresh as (insert into daybook_record (tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key,
        body, revision, schema_version, from_commit)
      select tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body::jsonb,
        revision, schema_version, commit_id
      from incoming where incoming.kind = 'created'),
    logged as (insert into daybook_record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
      select tenant_id, commit_id, position, type_seq, key, kind, revision from incoming)
    select first, (select count(*) from closed) as closed from head`);
  return flushed as Flushed;
}

/** As on SQLite, and a transaction that waited for another to commit has an earlier time than that one without any clock being set. */
const wasSetBack = sql`head.committed_at > excluded.committed_at + ${rawSql(String(limits.busyMsMax))}`;

const rowColumns = {
  ...({ kind: "text", seq: "integer", type_seq: "integer", key: "text", from_type_seq: "integer" } as const),
  ...({ from_key: "text", to_type_seq: "integer", to_key: "text", instance_key: "text", body: "text" } as const),
  ...({ revision: "integer", schema_version: "integer", place: "integer", position: "integer" } as const),
};

const commitColumns = {
  ...({ place: "integer", changes: "integer", actor: "text", reason: "text", metadata: "text" } as const),
  ...({ run_id: "text", root_run_id: "text" } as const),
};
