// A commit on SQLite: one prepared statement after the other, since each costs microseconds and nobody else can write.
import { limits } from "../core/limits.ts";
import { rawSql, sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { eachRow } from "../storage/word.ts";
import type { FlushCommit, Flushed, FlushRow } from "./flush.ts";

export async function flushSqlite(tx: Tx, commits: readonly FlushCommit[]): Promise<Flushed> {
  let [last, closed] = [0, 0];
  for (const commit of commits) {
    const done = await flushOne(tx, commit);
    last = done.commit;
    closed += done.closed;
  }
  return { first: last - commits.length + 1, closed };
}

type Head = { commit_id: number; committed_at: number; clock_from: number };

/** Times that went back by little are smoothed like those of transactions (core/steady-time.ts). */
const wasSetBack = sql`committed_at > excluded.committed_at + ${rawSql(String(limits.clockSmoothMs))}`;

async function flushOne(tx: Tx, made: FlushCommit): Promise<{ commit: number; closed: number }> {
  const head = await tx.get<Head>(sql`
    insert into daybook_record_head (tenant_id, commit_id, committed_at, clock_from) values (${tx.tenant}, 1, ${tx.now}, 1)
    on conflict (tenant_id) do update set commit_id = commit_id + 1,
      committed_at = case when ${wasSetBack} then excluded.committed_at else max(committed_at, excluded.committed_at) end,
      clock_from = case when ${wasSetBack} then commit_id + 1 else clock_from end
    returning commit_id, committed_at, clock_from`);
  const { commit_id: commit, committed_at: at, clock_from: from } = head as Head;
  const { actor, reason, metadata, run_id: run, root_run_id: root, rows } = made;
  await tx.run(sql`insert into daybook_record_commit
      (tenant_id, id, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id)
    values (${tx.tenant}, ${commit}, ${at}, ${from}, ${rows.length}, ${actor}, ${reason}, ${metadata}, ${run}, ${root})`);
  const closed = await close(tx, rows, commit);
  const fresh = rows.filter((row) => row.kind === "created");
  if (fresh.length > 0) await insert(tx, fresh, commit);
  const changes = rows.map(({ type_seq, key, kind, revision }, position) => ({
    ...{ tenant_id: tx.tenant, commit_id: commit, position, type_seq, key, kind, revision },
  }));
  await tx.run(sql`insert into daybook_record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
    ${eachRow(changeColumns, changes)}`);
  return { commit, closed };
}

async function close(tx: Tx, rows: readonly FlushRow[], commit: number): Promise<number> {
  let closed = 0;
  for (const { seq, kind, body, revision, schema_version: schema } of rows) {
    if (kind === "created") continue;
    closed += await tx.run(sql`insert into daybook_record_version
        (tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body, revision,
         schema_version, from_commit, to_commit, ended)
      select tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body, revision,
        schema_version, from_commit, ${commit}, ${kind === "deleted" ? "deleted" : "replaced"} from daybook_record where seq = ${seq}`);
    await tx.run(
      kind === "deleted"
        ? sql`delete from daybook_record where seq = ${seq}`
        : sql`update daybook_record set body = ${body}, revision = ${revision}, schema_version = ${schema},
            from_commit = ${commit} where seq = ${seq}`,
    );
  }
  return closed;
}

async function insert(tx: Tx, fresh: readonly FlushRow[], commit: number): Promise<void> {
  const rows = fresh.map(({ kind: _kind, seq: _seq, ...row }) => ({
    ...row,
    tenant_id: tx.tenant,
    from_commit: commit,
  }));
  await tx.run(sql`insert into daybook_record (tenant_id, type_seq, key, from_type_seq, from_key, to_type_seq, to_key,
      instance_key, body, revision, schema_version, from_commit) ${eachRow(recordColumns, rows)}`);
}

const recordColumns = {
  ...({ tenant_id: "text", type_seq: "integer", key: "text", from_type_seq: "integer", from_key: "text" } as const),
  ...({ to_type_seq: "integer", to_key: "text", instance_key: "text", body: "text", revision: "integer" } as const),
  ...({ schema_version: "integer", from_commit: "integer" } as const),
};

const changeColumns = {
  ...({ tenant_id: "text", commit_id: "integer", position: "integer", type_seq: "integer", key: "text" } as const),
  ...({ kind: "text", revision: "integer" } as const),
};
