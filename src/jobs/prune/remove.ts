// One slice: the families that may still leave, and all that is theirs, in one transaction, with a row that says so.
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, skipLocked } from "../../storage/word.ts";
import { keptRuns } from "../../telemetry/kept-run.ts";
import { lowerMark } from "../../telemetry/rollup/fold.ts";
import type { JobHooks } from "../hooks.ts";
import { isFree, mayLeave, readFamilies, type Family } from "./family.ts";
import type { Rule } from "./rule.ts";
import { nothing, othersOf, reservationsOf, runIdsOf, seqsOf, type Removed } from "./weigh.ts";

export async function removeFamilies(
  tx: Tx,
  rule: Rule,
  found: readonly Family[],
  onPruned: NonNullable<JobHooks["onPruned"]>,
): Promise<Removed> {
  const { tenant } = rule;
  const locked = await lockFamilies(tx, rule, found);
  const kept = await keptRuns(tx, tenant, runIdsOf(locked));
  const families = locked.filter((family) => isFree(family, kept));
  if (families.length === 0) return nothing;
  const runIds = runIdsOf(families);
  const seqs = seqsOf(families);
  const groups = families.flatMap(({ group }) => group ?? []);
  const steps = await tx.run(
    sql`delete from daybook_job_step where tenant_id = ${tenant} and chain_seq ${anyOf("integer", seqs)}`,
  );
  const logs = await tx.run(
    sql`delete from daybook_run_log where tenant_id = ${tenant} and run_id ${anyOf("text", runIds)}`,
  );
  const commands = await tx.all<{ log_path: string | null }>(
    sql`delete from daybook_run_command where tenant_id = ${tenant} and run_id ${anyOf("text", runIds)} returning log_path`,
  );
  const runs = await tx.run(sql`delete from daybook_run where tenant_id = ${tenant} and id ${anyOf("text", runIds)}`);
  await lowerMark(tx);
  await tx.run(sql`delete from daybook_job_key where job_seq ${anyOf("integer", seqs)}`);
  const jobs = await tx.run(sql`delete from daybook_job where seq ${anyOf("integer", seqs)}`);
  await tx.run(sql`delete from daybook_job_group where seq ${anyOf("integer", groups)}`);
  const held = families.flatMap(({ members }) => reservationsOf(members));
  const reservations = await tx.run(sql`delete from daybook_reservation where seq ${anyOf("integer", held)}`);
  await account(tx, rule, families, jobs);
  const others: Record<string, number> = {};
  for (const [kind, kept] of othersOf(families, Object.keys(onPruned))) {
    others[kind] = (await onPruned[kind]?.(tx, tenant, kept)) ?? 0;
  }
  const files = commands.flatMap((command) => command.log_path ?? []);
  return { jobs, groups: groups.length, runs, logs, steps, reservations, others, files };
}

// Between finding and removing, a job may have been retried or a group added to. On PostgreSQL whoever does that holds the
// parent or the group, so what is locked by us and read after that stays as it is. What somebody else holds is left to
// the next prune, because nobody should wait for this one, nor this one for anybody: also not for another prune.
async function lockFamilies(tx: Tx, rule: Rule, found: readonly Family[]): Promise<Family[]> {
  const heads = found.flatMap(({ head }) => head ?? []);
  const groups = found.flatMap(({ group }) => group ?? []);
  const jobs = await tx.all<{ seq: number }>(
    sql`select seq from daybook_job where seq ${anyOf("integer", seqsOf(found))} order by seq ${skipLocked}`,
  );
  const groupRows = await tx.all<{ seq: number }>(
    sql`select seq from daybook_job_group job_group where seq ${anyOf("integer", groups)} order by seq ${skipLocked}`,
  );
  const ours = { jobs: new Set(jobs.map((row) => row.seq)), groups: new Set(groupRows.map((row) => row.seq)) };
  const families = await readFamilies((statement) => tx.all(statement), { heads, groups });
  return families.filter(
    (family) =>
      (family.group === null || ours.groups.has(family.group)) &&
      family.members.every((member) => ours.jobs.has(member.seq)) &&
      mayLeave(rule, family),
  );
}

// Whoever asks for an id that is gone finds a prune that spans the time when its job was made.
async function account(tx: Tx, rule: Rule, families: readonly Family[], removed: number): Promise<void> {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { members } of families) {
    for (const { created_at: at } of members) [first, last] = [Math.min(first, at), Math.max(last, at)];
  }
  await tx.run(sql`insert into daybook_pruning (tenant_id, pruned_at, what, filter, removed, first_at, last_at)
    values (${rule.tenant}, ${tx.now}, 'job', ${rule.filter}, ${removed}, ${first}, ${last})`);
}
