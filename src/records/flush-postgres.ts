// A commit on PostgreSQL: one statement, so that the tenant's head is held for one round trip and the end of the
// transaction. Its parts all read what was there before it.
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { rowSet } from "../storage/word.ts";
import type { FlushCommit, FlushRow } from "./flush.ts";

type Flushed = { commit: number; at: number; closed: number };

export async function flushPostgres(tx: Tx, made: FlushCommit, rows: readonly FlushRow[]): Promise<Flushed> {
  const incoming = rows.map((row, position) => ({ ...row, position }));
  const { actor, reason, metadata, run_id: run, root_run_id: root } = made;
  const flushed = await tx.get<Flushed>(sql`
    with head as (
      insert into record_head as head (tenant_id, commit_id, committed_at) values (${tx.tenant}, 1, ${tx.now})
      on conflict (tenant_id) do update set commit_id = head.commit_id + 1,
        committed_at = greatest(head.committed_at, excluded.committed_at)
      returning tenant_id, commit_id, committed_at),
    incoming as materialized (select * from ${rowSet("rows", columns, incoming)}),
    made as (insert into record_commit
        (tenant_id, id, committed_at, changes, actor, reason, metadata, run_id, root_run_id)
      select tenant_id, commit_id, committed_at, ${made.changes}::bigint, ${actor}::text, ${reason}::text,
        ${metadata}::text, ${run}::text, ${root}::text from head),
    closed as (insert into record_version
        (tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body, revision,
         schema_version, from_commit, to_commit, ended)
      select record.tenant_id, record.type_seq, record.key, record.from_type_seq, record.from_key, record.to_type_seq,
        record.to_key, record.instance_key, record.body, record.revision, record.schema_version, record.from_commit,
        head.commit_id, case incoming.kind when 'deleted' then 'deleted' else 'replaced' end
      from incoming join record on record.seq = incoming.seq cross join head returning 1),
    gone as (delete from record using incoming where record.seq = incoming.seq and incoming.kind = 'deleted'),
    changed as (update record set body = incoming.body::jsonb, revision = incoming.revision,
        schema_version = incoming.schema_version, from_commit = head.commit_id
      from incoming, head where record.seq = incoming.seq and incoming.kind = 'updated'),
    fresh as (insert into record (tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key,
        body, revision, schema_version, from_commit)
      select head.tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body::jsonb,
        revision, schema_version, head.commit_id
      from incoming, head where incoming.kind = 'created'),
    logged as (insert into record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
      select head.tenant_id, head.commit_id, position, type_seq, key, kind, revision from incoming, head)
    select commit_id as commit, committed_at as at, (select count(*) from closed) as closed from head`);
  return flushed as Flushed;
}

const columns = {
  ...({ kind: "text", seq: "integer", type_seq: "integer", key: "text", from_type_seq: "integer" } as const),
  ...({ from_key: "text", to_type_seq: "integer", to_key: "text", instance_key: "text", body: "text" } as const),
  ...({ revision: "integer", schema_version: "integer", position: "integer" } as const),
};
