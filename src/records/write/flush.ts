// The end of a unit: all its changes to records become one commit. A unit that changed nothing makes no commit.
import { DaybookError } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { forUpdate, lockKeyOf } from "../../storage/word.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import type { RecordFact, RecordHooks } from "../room.ts";
import { recordUnitOf, type Change, type RecordUnit } from "./record-unit.ts";
import { writeOnPostgres, writeOnSqlite, type FlushCommit, type FlushRow } from "./write-commits.ts";

export const recordsChannel = "records";

/** Writes what the transaction's unit holds, if it has one. */
export async function flushRecords(tx: Tx): Promise<void> {
  const unit = recordUnitOf(tx);
  if (unit !== undefined) await flushUnits(tx, [unit]);
}

/** Writes a commit for each unit that has changes, in their order. */
export async function flushUnits(tx: Tx, units: readonly RecordUnit[]): Promise<void> {
  const commits = units.map(takeChanges).filter(({ changes }) => changes.length > 0);
  if (commits.length === 0) return;
  const made = commits.map(({ unit, changes }) => ({ ...toCommit(unit), rows: changes.map(toRow) }));
  const flush = tx.dialect === "sqlite" ? writeOnSqlite : writeOnPostgres;
  // Sent first, so that on PostgreSQL it travels with the flush and the head is held no longer for it.
  const [heard, { first, closed }] = await Promise.all([heardTypes(tx, commits), flush(tx, made)]);
  const expected = made.flatMap(({ rows }) => rows).filter((row) => row.kind !== "created").length;
  if (closed !== expected) {
    throw new DaybookError(
      "internal",
      `a commit closed ${closed} versions but had read ${expected}: it was rolled back`,
    );
  }
  for (const [index, { unit, changes }] of commits.entries()) {
    if (heard.size > 0) await stateFacts(unit, changes, made[index]?.rows ?? [], { commit: first + index, heard });
  }
  tx.wake(recordsChannel);
}

// A record that the unit both made and deleted leaves no trace.
function takeChanges(unit: RecordUnit): { unit: RecordUnit; changes: Change[] } {
  const changes = [...unit.changes.values()].filter(({ before, body }) => before !== undefined || body !== null);
  unit.changes.clear();
  return { unit, changes };
}

function toRow({ before, body, key, ends, row, revision }: Change): FlushRow {
  return {
    kind: before === undefined ? "created" : body === null ? "deleted" : "updated",
    seq: before?.seq ?? null,
    type_seq: row.seq,
    key,
    from_type_seq: row.from_type_seq,
    from_key: ends?.from ?? null,
    to_type_seq: row.to_type_seq,
    to_key: ends?.to ?? null,
    instance_key: ends?.instance ?? null,
    body,
    // A deletion carries the revision that it ended.
    revision: body === null ? (before?.revision ?? revision) : revision,
    schema_version: row.schemaVersion,
  };
}

function toCommit({ notes, cause }: RecordUnit): Omit<FlushCommit, "rows"> {
  return {
    actor: notes.actor ?? null,
    reason: notes.reason ?? null,
    metadata: toJson(notes.metadata ?? {}, { what: "metadata" }),
    run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
  };
}

/** The names of the changed types that have listeners. */
async function heardTypes(
  tx: Tx,
  commits: readonly { readonly unit: RecordUnit; readonly changes: readonly Change[] }[],
): Promise<ReadonlySet<string>> {
  const [first] = commits;
  const hooks: RecordHooks = first?.unit.room.hooks ?? {};
  if (hooks.onFact === undefined) return new Set();
  const types = [...new Set(commits.flatMap(({ changes }) => changes.map(({ type }) => type.name)))];
  const answers = await Promise.all(types.map(async (type) => (await hooks.hears?.(tx, type)) ?? true));
  return new Set(types.filter((_, index) => answers[index] === true));
}

async function stateFacts(
  { tx, room: { hooks }, cause }: RecordUnit,
  changes: readonly Change[],
  rows: readonly FlushRow[],
  { commit, heard }: { readonly commit: number; readonly heard: ReadonlySet<string> },
): Promise<void> {
  for (const [index, { type, key, ends, body, before }] of changes.entries()) {
    if (!heard.has(type.name)) continue;
    const { kind, revision } = rows[index] as FlushRow;
    const value: unknown = JSON.parse(body ?? before?.body ?? "null");
    const fact: RecordFact = {
      type: `record.${type.name}.${kind}`,
      record: {
        tenant: tx.tenant,
        type: type.name,
        key,
        from: ends?.from ?? null,
        to: ends?.to ?? null,
        instance: ends?.instance ?? null,
        kind,
        revision,
        commit,
        value,
      },
    };
    await hooks.onFact?.(tx, fact, cause);
  }
}

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
