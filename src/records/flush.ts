// The end of a unit: everything it made of records becomes one commit. A unit that made nothing makes no commit.
import { DaybookError } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { sql } from "../storage/sql.ts";
import type { Tx } from "../storage/store.ts";
import { forUpdate } from "../storage/word.ts";
import { flushPostgres } from "./flush-postgres.ts";
import { flushSqlite } from "./flush-sqlite.ts";
import { recordUnitOf, type Change, type RecordUnit } from "./record-unit.ts";
import type { ChangeKind, RecordFact } from "./room.ts";

export const recordsChannel = "records";

/** A commit as it was made. */
export type Committed = { readonly commit: number; readonly at: number };

/** One change as it goes into the tables. */
export type FlushRow = {
  readonly kind: ChangeKind;
  /** The row of what is known; null while there is none. */
  readonly seq: number | null;
  readonly type_seq: number;
  readonly key: string;
  readonly from_type_seq: number | null;
  readonly from_key: string | null;
  readonly to_type_seq: number | null;
  readonly to_key: string | null;
  readonly instance_key: string | null;
  readonly body: string | null;
  readonly revision: number;
  readonly schema_version: number;
};

export type FlushCommit = {
  readonly changes: number;
  readonly actor: string | null;
  readonly reason: string | null;
  readonly metadata: string;
  readonly run_id: string | null;
  readonly root_run_id: string | null;
};

/** Writes what the transaction's unit holds. Undefined when it holds nothing. */
export async function flushRecords(tx: Tx): Promise<Committed | undefined> {
  const unit = recordUnitOf(tx);
  if (unit === undefined) return undefined;
  // What a unit made and deleted again never was.
  const changes = [...unit.changes.values()].filter(({ before, body }) => before !== undefined || body !== null);
  unit.changes.clear();
  if (changes.length === 0) return undefined;
  const rows = changes.map(toRow);
  const flush = tx.dialect === "sqlite" ? flushSqlite : flushPostgres;
  const { commit, at, closed } = await flush(tx, toCommit(unit, rows.length), rows);
  const expected = rows.filter((row) => row.kind !== "created").length;
  if (closed !== expected) {
    throw new DaybookError(
      "internal",
      `a commit closed ${closed} versions where it had read ${expected}: nothing was kept`,
    );
  }
  await stateFacts(unit, changes, rows, commit);
  tx.wake(recordsChannel);
  return { commit, at };
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
    // What is deleted keeps the number of its last version.
    revision: body === null ? (before?.revision ?? revision) : revision,
    schema_version: row.schemaVersion,
  };
}

function toCommit({ notes, cause }: RecordUnit, changes: number): FlushCommit {
  return {
    changes,
    actor: notes.actor ?? null,
    reason: notes.reason ?? null,
    metadata: toJson(notes.metadata ?? {}, { what: "metadata" }),
    run_id: cause?.runId ?? null,
    root_run_id: cause?.rootRunId ?? null,
  };
}

async function stateFacts(
  { tx, room: { hooks } }: RecordUnit,
  changes: readonly Change[],
  rows: readonly FlushRow[],
  commit: number,
): Promise<void> {
  if (hooks.onFact === undefined) return;
  const heard = new Map<string, boolean>();
  for (const [index, { type, key, ends, body, before }] of changes.entries()) {
    if (!heard.has(type.name)) heard.set(type.name, (await hooks.hears?.(tx, type.name)) ?? true);
    if (heard.get(type.name) !== true) continue;
    const { kind, revision } = rows[index] as FlushRow;
    const value: unknown = JSON.parse(body ?? before?.body ?? "null");
    const fact: RecordFact = {
      type: `record.${type.name}.${kind}`,
      record: {
        ...{ tenant: tx.tenant, type: type.name, key, kind, revision, commit, value },
        ...{ from: ends?.from ?? null, to: ends?.to ?? null, instance: ends?.instance ?? null },
      },
    };
    await hooks.onFact(tx, fact);
  }
}

/** For units that are not serializable: whoever holds the head reads what nobody else can change. The row is made here when
 *  there is none, because what is not there cannot be held. */
export async function holdHead(tx: Tx): Promise<void> {
  if (tx.dialect === "sqlite") return;
  const hold = sql`select commit_id from record_head where tenant_id = ${tx.tenant} ${forUpdate}`;
  if ((await tx.get(hold)) !== undefined) return;
  await tx.run(sql`insert into record_head (tenant_id, commit_id, committed_at) values (${tx.tenant}, 0, 0)
    on conflict (tenant_id) do nothing`);
  await tx.get(hold);
}
