// The end of a unit: all its changes to records become one commit. A unit that changed nothing makes no commit. The engines want
// different statements, which stand side by side: on SQLite a statement costs microseconds and no other writer waits; on
// PostgreSQL it costs a round trip during which the tenant's head is held.
import { DaybookError } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { inSlices } from "../../storage/slices.ts";
import { rawSql, sql, type Sql, type Value } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { asText, forUpdate, lockKeyOf, rowSet, valuesInto } from "../../storage/word.ts";
import { kindOf, rowColumns, statedRevision, toRow } from "./record-unit.ts";
import type { Change, RecordUnit } from "./record-unit.ts";

export const recordsChannel = "records";

/** Writes a commit for each unit that has changes, in their order. */
export async function flushUnits(tx: Tx, units: readonly RecordUnit[]): Promise<void> {
  const commits = units.map(toCommit).filter(({ changes }) => changes.length > 0);
  if (commits.length === 0) return;
  // Sent first, so that on PostgreSQL it travels with the flush and the head is held no longer for it.
  const [heard, first] = await Promise.all([heardTypes(tx, commits), writeCommits(tx, commits)]);
  for (const [index, commit] of commits.entries()) {
    await stateFacts(commit, first + index, heard);
    commit.unit.changes.clear();
  }
  tx.wake(recordsChannel);
}

/** Writes them, and returns the number of the first. */
export async function writeCommits(tx: Tx, commits: readonly Commit[]): Promise<number> {
  const write = tx.dialect === "sqlite" ? writeOnSqlite : writeOnPostgres;
  const { first, closed } = await write(tx, commits);
  let expected = 0;
  for (const { changes } of commits) for (const { before } of changes) if (before !== undefined) expected++;
  if (closed === expected) return first;
  throw new DaybookError("internal", `a commit closed ${closed} versions but had read ${expected}: it was rolled back`);
}

const noteColumns = { actor: "text", reason: "text", metadata: "text", run_id: "text", root_run_id: "text" } as const;

export type Commit = Readonly<Record<keyof typeof noteColumns, string | null>> & {
  readonly unit: RecordUnit;
  readonly changes: readonly Change[];
};

/** What the unit still has to write. */
export function toCommit(unit: RecordUnit): Commit {
  const { notes, cause } = unit;
  const changes: Change[] = [];
  for (const change of unit.changes.values()) {
    // A record that the unit both made and deleted leaves no trace.
    const leavesTrace = change.before !== undefined || change.body !== null;
    if (leavesTrace && change.written === undefined) changes.push(change);
  }
  return {
    unit,
    changes,
    actor: notes.actor ?? null,
    reason: notes.reason ?? null,
    metadata: notes.metadata === undefined ? "{}" : toJson(notes.metadata, { what: "metadata" }),
    run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
  };
}

/** The names of the changed types that have listeners. */
export async function heardTypes(
  tx: Tx,
  commits: readonly Pick<Commit, "unit" | "changes">[],
): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const { changes } of commits) for (const { type } of changes) names.add(type.name);
  const hooks = commits[0]?.unit.room.hooks;
  const heard = await Promise.all(
    [...names].map(async (name) => ((await hooks?.hears(tx, name)) === true ? [name] : [])),
  );
  return new Set(heard.flat());
}

/** Tells the listeners what changed; a history that is imported is not told. */
export async function stateFacts(
  { unit, changes }: Pick<Commit, "unit" | "changes">,
  commit: number,
  heard: ReadonlySet<string>,
): Promise<void> {
  const { tx, room, cause } = unit;
  if (heard.size === 0 || unit.madeAt !== undefined) return;
  for (const change of changes) {
    const { type, key, ends, body, before } = change;
    if (!heard.has(type.name)) continue;
    const value: unknown = JSON.parse(body ?? before?.body ?? (await readClosed(tx, change)));
    const { from, to, instance } = ends ?? { from: null, to: null, instance: null };
    const about = { tenant: tx.tenant, type: type.name, key, from, to, instance };
    const kind = kindOf(change);
    const record = { ...about, kind, revision: statedRevision(change), commit, value };
    await room.hooks.onFact(tx, { type: `record.${type.name}.${kind}`, record }, cause);
  }
}

/** The document that a deletion ended, where the unit had not read it. */
async function readClosed(tx: Tx, { row, key, before }: Change): Promise<string> {
  const closed = await tx.get<{ body: string }>(sql`select body${asText} as body from daybook_record_version
    where tenant_id = ${tx.tenant} and type_seq = ${row.seq} and key = ${key} and from_commit = ${before?.commit ?? 0}`);
  return closed?.body ?? "null";
}

/** The columns that a live row hands on to its closed version. */
export const versionColumns = rawSql([...Object.keys(rowColumns), "tenant_id", "from_commit"].join(", "));
/** Those that an entity has; reading the others shows. */
const entityColumns = rawSql("type_seq, key, body, revision, schema_version, tenant_id, from_commit");

/** The number of the first commit, and how many live rows were closed. */
type Flushed = { readonly first: number; readonly closed: number };

/** Prepared statements with ten rows at once, one after the other. */
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
  const { tenant } = tx;
  const { unit, changes } = made;
  const commit = unit.ahead?.commit ?? (await beginCommit(tx, made));
  const positions = unit.ahead?.positions ?? 0;
  const entities: Value[][] = [];
  const relations: Value[][] = [];
  const updated: Value[][] = [];
  const logged: Value[][] = [];
  const replaced: number[] = [];
  const deleted: number[] = [];
  for (const [position, change] of changes.entries()) {
    const { before, body, key, ends, row, revision } = change;
    logged.push([tenant, commit, positions + position, row.seq, key, kindOf(change), statedRevision(change)]);
    if (before === undefined) {
      const own = [row.seq, key, body, revision, row.schemaVersion, tenant, commit];
      if (ends === null) entities.push(own);
      else relations.push([...own, row.from_type_seq, ends.from, row.to_type_seq, ends.to, ends.instance]);
    } else if (body === null) deleted.push(before.seq);
    else {
      replaced.push(before.seq);
      updated.push([body, revision, row.schemaVersion, commit, before.seq]);
    }
  }
  const columns = changes.every(({ ends }) => ends === null) ? entityColumns : versionColumns;
  const replacing = await close(tx, { columns, ended: "replaced", seqs: replaced, commit });
  const deleting = await close(tx, { columns, ended: "deleted", seqs: deleted, commit });
  await runEach(tx, updateRecord, updated);
  await runEach(
    tx,
    "delete from daybook_record where seq = ?",
    deleted.map((seq) => [seq]),
  );
  await runEach(tx, insertEntity, entities);
  await runEach(tx, insertRelation, relations);
  await runEach(tx, insertChange, logged);
  const types = [...new Set(changes.map(({ row }) => row.seq))];
  await runEach(
    tx,
    insertType,
    types.map((seq) => [tenant, seq, commit]),
  );
  return { commit, closed: replacing + deleting };
}

/** Makes the commit of a unit, and returns its number. */
async function beginCommit(tx: Tx, made: Commit): Promise<number> {
  const { tenant } = tx;
  const { at: now, wasSetBack } = timeOf(tx, made.unit, "committed_at", limits.clockSmoothMs);
  const { actor, reason, metadata, run_id: run, root_run_id: root, changes } = made;
  const head = await tx.get<Head>(sql`
    insert into daybook_record_head (tenant_id, commit_id, committed_at, clock_from) values (${tenant}, 1, ${now}, 1)
    on conflict (tenant_id) do update set commit_id = commit_id + 1,
      committed_at = case when ${wasSetBack} then excluded.committed_at else max(committed_at, excluded.committed_at) end,
      clock_from = case when ${wasSetBack} then commit_id + 1 else clock_from end
    returning commit_id as "commit", committed_at as at, clock_from as "from"`);
  const { commit, at, from } = head as Head;
  await tx.run(sql`insert into daybook_record_commit
      (tenant_id, id, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id)
    values (${tenant}, ${commit}, ${at}, ${from}, ${changes.length}, ${actor}, ${reason}, ${metadata}, ${run}, ${root})`);
  return commit;
}

/** The time of a commit, and whether the clock was set back. A small step back is smoothed here as it is for transactions (core/clock.ts); a
 *  commit of the past keeps its time. */
function timeOf(tx: Tx, { madeAt }: RecordUnit, last: string, smoothMs: number): { at: number; wasSetBack: Sql } {
  const allowed = madeAt === undefined ? smoothMs : 0;
  return { at: madeAt ?? tx.now, wasSetBack: rawSql(`${last} > excluded.committed_at + ${allowed}`) };
}

const updateRecord =
  "update daybook_record set body = ?, revision = ?, schema_version = ?, from_commit = ? where seq = ?";
const insertEntity = `insert into daybook_record (type_seq, key, body, revision, schema_version, tenant_id, from_commit)
  values (?, ?, ?, ?, ?, ?, ?)`;
const insertRelation = `insert into daybook_record (type_seq, key, body, revision, schema_version, tenant_id, from_commit,
  from_type_seq, from_key, to_type_seq, to_key, instance_key) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const insertChange = `insert into daybook_record_change (tenant_id, commit_id, position, type_seq, key, kind, revision)
  values (?, ?, ?, ?, ?, ?, ?)`;

const insertType =
  "insert into daybook_record_commit_type (tenant_id, type_seq, commit_id) values (?, ?, ?) on conflict do nothing";

function runEach(tx: Tx, text: string, rows: readonly (readonly Value[])[]): Promise<void> {
  return inSlices(rows, (slice) => tx.run(valuesInto(text, slice)));
}

type Closing = {
  readonly columns: Sql;
  readonly ended: "replaced" | "deleted";
  readonly seqs: readonly number[];
  readonly commit: number;
};

/** Copies live rows among the closed versions; found by their numbers one by one, whatever the planner believes. */
async function close(tx: Tx, { columns, ended, seqs, commit }: Closing): Promise<number> {
  let closed = 0;
  await inSlices(seqs, async (slice) => {
    closed += await tx.run(sql`insert into daybook_record_version (${columns}, to_commit, ended)
      select ${columns}, ${commit}, ${ended} from (select value as number from json_each(${JSON.stringify(slice)})) as closing
      cross join daybook_record record on record.seq = closing.number`);
  });
  return closed;
}

/** One statement for all commits. Its parts all read what was there before it. */
async function writeOnPostgres(tx: Tx, commits: readonly Commit[]): Promise<Flushed> {
  const { unit } = commits[0] as Commit;
  const positions = unit.ahead?.positions ?? 0;
  const incoming = commits.flatMap(({ changes }, index) =>
    changes.map((change, position) => ({ ...toRow(change), index, position: positions + position })),
  );
  const made = commits.map((commit, index) => ({ ...commit, index, changes: commit.changes.length }));
  // As on SQLite; besides, a transaction that waited for another one's commit has the earlier time although no clock was set.
  const { at, wasSetBack } = timeOf(tx, unit, "head.committed_at", limits.busyMsMax);
  const begin = sql`head as (
      insert into daybook_record_head as head (tenant_id, commit_id, committed_at, clock_from)
      values (${tx.tenant}, ${commits.length}, ${at}, 1)
      on conflict (tenant_id) do update set commit_id = head.commit_id + excluded.commit_id,
        committed_at = case when ${wasSetBack} then excluded.committed_at
          else greatest(head.committed_at, excluded.committed_at) end,
        clock_from = case when ${wasSetBack} then head.commit_id + 1 else head.clock_from end
      returning tenant_id, commit_id - ${commits.length - 1} as first, committed_at, clock_from),
    made as (insert into daybook_record_commit
        (tenant_id, id, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id)
      select tenant_id, first + index, committed_at, clock_from, changes, actor, reason, metadata, run_id, root_run_id
      from ${rowSet("made", madeColumns, made)}, head)`;
  const goOn = sql`head as (select tenant_id, commit_id as first from daybook_record_head where tenant_id = ${tx.tenant})`;
  const flushed = await tx.get<Flushed>(sql`
    with ${unit.ahead === undefined ? begin : goOn},
    incoming as materialized (select rows.*, head.first + rows.index as commit_id, head.tenant_id
      from ${rowSet("rows", incomingColumns, incoming)}, head),
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
      select tenant_id, commit_id, position, type_seq, key, kind, revision from incoming),
    touched as (insert into daybook_record_commit_type (tenant_id, type_seq, commit_id)
      select distinct tenant_id, type_seq, commit_id from incoming on conflict do nothing)
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
