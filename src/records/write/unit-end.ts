// When the records of a transaction are written: at its end, all as one commit, or, where a statement of the user's own reads in between,
// what there is by then. The commit is the same; it is begun earlier, and what changes once more is taken back and written again.
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { recordViews } from "../migrations.ts";
import { flushUnits, heardTypes, recordsChannel, stateFacts, toCommit, versionColumns, writeCommits } from "./flush.ts";
import { recordUnitOf, type Change, type RecordUnit } from "./record-unit.ts";

/** Writes what the transaction's unit holds, if it has one. */
export async function flushRecords(tx: Tx): Promise<void> {
  const unit = recordUnitOf(tx);
  if (unit === undefined) return;
  await unit.showing;
  if (unit.ahead !== undefined) await writeAhead(tx, unit);
  if (unit.ahead === undefined) await flushUnits(tx, [unit]);
  else await endAhead(tx, unit, unit.ahead.commit);
}

// What a view or a function of the user's own reads does not show in the statement.
const namesRecords = new RegExp(`daybook_record|\\b(?:${recordViews.map(({ name }) => name).join("|")})\\b`, "i");

/** Writes what the unit holds so far, for a statement that reads the tables themselves. Any other leaves it to the end: from here
 *  on the unit holds the commit counter, and would wait with it for the rows of others. */
export async function showRecords(tx: Tx, { strings }: Sql): Promise<void> {
  const unit = recordUnitOf(tx);
  if (unit === undefined || (unit.changes.size === 0 && unit.showing === undefined)) return;
  if (!namesRecords.test(strings.join("?"))) return;
  const before = unit.showing;
  // Two statements that were begun together: the second one waits for what the first one writes.
  unit.showing = (async () => {
    await before;
    await writeAhead(tx, unit);
  })();
  await unit.showing;
}

async function writeAhead(tx: Tx, unit: RecordUnit): Promise<void> {
  for (const change of unit.changes.values()) {
    if (change.written !== undefined && change.written.body !== change.body) await takeBack(tx, unit, change);
  }
  const commit = toCommit(unit);
  if (commit.changes.length === 0) return;
  // A write that comes while this one is on its way is written again.
  const bodies = commit.changes.map(({ body }) => body);
  // What the conditions of later writes mean by the last commit is the one before this.
  await unit.head();
  const number = await writeCommits(tx, [commit]);
  unit.ahead = { commit: number, positions: (unit.ahead?.positions ?? 0) + commit.changes.length };
  for (const [index, change] of commit.changes.entries()) change.written = { body: bodies[index] ?? null };
}

/** Makes the tables as if the unit had not changed the key. */
async function takeBack(tx: Tx, { ahead }: RecordUnit, change: Change): Promise<void> {
  const { row, key, before } = change;
  const mine = sql`tenant_id = ${tx.tenant} and type_seq = ${row.seq} and key = ${key}`;
  const commit = ahead?.commit ?? 0;
  await tx.run(sql`delete from daybook_record where ${mine}`);
  if (before !== undefined) {
    await tx.run(sql`insert into daybook_record (seq, ${versionColumns})
      select ${before.seq}, ${versionColumns} from daybook_record_version where ${mine} and to_commit = ${commit}`);
    await tx.run(sql`delete from daybook_record_version where ${mine} and to_commit = ${commit}`);
  }
  await tx.run(sql`delete from daybook_record_change where ${mine} and commit_id = ${commit}`);
  change.written = undefined;
}

/** Says in the commit what became of it in the end; one that changed nothing after all is none. */
async function endAhead(tx: Tx, unit: RecordUnit, number: number): Promise<void> {
  const { tenant } = tx;
  const { actor, reason, metadata } = toCommit(unit);
  const changes = [...unit.changes.values()].filter(({ written }) => written !== undefined);
  const mine = (column: string): Sql => sql`tenant_id = ${tenant} and ${rawSql(column)} = ${number}`;
  await tx.run(sql`delete from daybook_record_commit_type where ${mine("commit_id")}
    and type_seq not in (select type_seq from daybook_record_change where ${mine("commit_id")})`);
  if (changes.length === 0) {
    await tx.run(sql`delete from daybook_record_commit where ${mine("id")}`);
    const last = sql`from daybook_record_commit where tenant_id = ${tenant} and id = ${number - 1}`;
    await tx.run(sql`update daybook_record_head set commit_id = ${number - 1},
      committed_at = coalesce((select committed_at ${last}), 0), clock_from = coalesce((select clock_from ${last}), 1)
      where tenant_id = ${tenant}`);
    return;
  }
  await tx.run(sql`update daybook_record_commit set changes = ${changes.length}, actor = ${actor}, reason = ${reason},
    metadata = ${metadata} where ${mine("id")}`);
  const whole = { unit, changes };
  await stateFacts(whole, number, await heardTypes(tx, [whole]));
  unit.changes.clear();
  tx.wake(recordsChannel);
}
