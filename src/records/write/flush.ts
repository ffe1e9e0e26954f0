// The end of a unit: all its changes to records become one commit. A unit that changed nothing makes no commit. The engines want
// different statements, which stand side by side: on SQLite a statement costs microseconds and no other writer waits; on
// PostgreSQL it costs a round trip during which the tenant's head is held.
import { DaybookError } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { forUpdate, insertInto, lockKeyOf, rowSet } from "../../storage/word.ts";
import { recordUnitOf, rowColumns, toRow, type ChangeRow, type RecordUnit } from "./record-unit.ts";

export const recordsChannel = "records";

/** Writes what the transaction's unit holds, if it has one. */
export async function flushRecords(tx: Tx): Promise<void> {
  const unit = recordUnitOf(tx);
  if (unit !== undefined) await flushUnits(tx, [unit]);
}

/** Writes a commit for each unit that has changes, in their order. */
export async function flushUnits(tx: Tx, units: readonly RecordUnit[]): Promise<void> {
  const commits = units.map(toCommit).filter(({ rows }) => rows.length > 0);
  if (commits.length === 0) return;
  const write = tx.dialect === "sqlite" ? writeOnSqlite : writeOnPostgres;
  // Sent first, so that on PostgreSQL it travels with the flush and the head is held no longer for it.
  const [heard, { first, closed }] = await Promise.all([heardTypes(tx, commits), write(tx, commits)]);
  const expected = commits.flatMap(({ rows }) => rows).filter((row) => row.kind !== "created").length;
  if (closed !== expected) {
    throw new DaybookError(
      "internal",
      `a commit closed ${closed} versions but had read ${expected}: it was rolled back`,
    );
  }
  for (const [index, { unit, rows }] of commits.entries()) await stateFacts(unit, rows, first + index, heard);
  tx.wake(recordsChannel);
}

const noteColumns = { actor: "text", reason: "text", metadata: "text", run_id: "text", root_run_id: "text" } as const;

type Commit = Readonly<Record<keyof typeof noteColumns, string | null>> & {
  readonly unit: RecordUnit;
  readonly rows: readonly ChangeRow[];
};

function toCommit(unit: RecordUnit): Commit {
  const { notes, cause, changes } = unit;
  // A record that the unit both made and deleted leaves no trace.
  const lasting = [...changes.values()].filter(({ before, body }) => before !== undefined || body !== null);
  changes.clear();
  return {
    unit,
    rows: lasting.map(toRow),
    actor: notes.actor ?? null,
    reason: notes.reason ?? null,
    metadata: toJson(notes.metadata ?? {}, { what: "metadata" }),
    run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
  };
}

/** The names of the changed types that have listeners. */
async function heardTypes(tx: Tx, commits: readonly Commit[]): Promise<ReadonlySet<string>> {
  const names = new Set(commits.flatMap(({ rows }) => rows.map(({ change }) => change.type.name)));
  const hooks = commits[0]?.unit.room.hooks;
  const heard = await Promise.all(
    [...names].map(async (name) => ((await hooks?.hears(tx, name)) === true ? [name] : [])),
  );
  return new Set(heard.flat());
}

async function stateFacts(
  { tx, room: { hooks }, cause }: RecordUnit,
  rows: readonly ChangeRow[],
  commit: number,
  heard: ReadonlySet<string>,
): Promise<void> {
  for (const { change, kind, revision } of rows) {
    const { type, key, ends, body, before } = change;
    if (!heard.has(type.name)) continue;
    const value: unknown = JSON.parse(body ?? before?.body ?? "null");
    const { from, to, instance } = ends ?? { from: null, to: null, instance: null };
    const about = { tenant: tx.tenant, type: type.name, key, from, to, instance };
    const record = { ...about, kind, revision, commit, value };
    await hooks.onFact(tx, { type: `record.${type.name}.${kind}`, record }, cause);
  }
}

/** The columns that a live row hands on to its closed version. */
const versionColumns = rawSql([...Object.keys(rowColumns), "tenant_id", "from_commit"].join(", "));

/** The number of the first commit, and how many live rows were closed. */
type Flushed = { readonly first: number; readonly closed: number };

/** One prepared statement after the other. */
async function writeOnSqlite(tx: Tx, commits: readonly Commit[]): Promise<Flushed> {
  let [last, closed] = [0, 0];
  for (const commit of commits) {
    const done = await writeOne(tx, commit);
    last = done.commit;
    closed += done.closed;
  }
  return { first: last - commits.length + 1, closed };
}

type Head = { commit: number; at: number; from: number };

async function writeOne(tx: Tx, made: Commit): Promise<{ commit: number; closed: number }> {
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

async function closeVersions(tx: Tx, rows: readonly ChangeRow[], commit: number): Promise<number> {
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
async function writeOnPostgres(tx: Tx, commits: readonly Commit[]): Promise<Flushed> {
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
      from ${rowSet("made", madeColumns, made)}, head),
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
      select type_seq, key, from_type_seq, from_key, to_type_seq, to_key, instance_key, body::jsonb,
        revision, schema_version, tenant_id, commit_id
      from incoming where incoming.kind = 'created'),
    logged as (insert into daybook_record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
      select tenant_id, commit_id, position, type_seq, key, kind, revision from incoming)
    select first, (select count(*) from closed) as closed from head`);
  return flushed as Flushed;
}

const incomingColumns = { ...rowColumns, kind: "text", seq: "integer", index: "integer", position: "integer" } as const;
const madeColumns = { ...noteColumns, index: "integer", changes: "integer" } as const;

/** The name that transactions compete for when they write records of a tenant. */
export function recordsTurn(tenant: string): string {
  return `records:${tenant}`;
}

/** Locks the tenant's head for a unit that is not serializable, so that no other unit changes what it reads. Makes the row when
 *  there is none to lock. A user's transaction that lost a conflict goes first. */
export async function holdHead(tx: Tx): Promise<void> {
  if (tx.dialect === "sqlite") return;
  const hold = sql`select commit_id from daybook_record_head where tenant_id = ${tx.tenant} ${forUpdate}`;
  const turn = sql`select pg_catalog.pg_advisory_xact_lock_shared(${lockKeyOf(recordsTurn(tx.tenant))})`;
  // Sent together; PostgreSQL takes the turn's lock first.
  const [, held] = await Promise.all([tx.get(turn), tx.get(hold)]);
  if (held !== undefined) return;
  await tx.run(sql`insert into daybook_record_head (tenant_id, commit_id, committed_at, clock_from)
    values (${tx.tenant}, 0, 0, 1)
    on conflict (tenant_id) do nothing`);
  await tx.get(hold);
}
