// What goes with the jobs of families: their runs, the lines these wrote, their steps and the programs they started.
import { sql } from "../../storage/sql.ts";
import { anyOf } from "../../storage/word.ts";
import type { ReadRows } from "../definition/stored-definition.ts";
import type { Family } from "./family.ts";

export type Removed = {
  readonly jobs: number;
  readonly groups: number;
  readonly runs: number;
  readonly logs: number;
  readonly steps: number;
  /** Reservations that have ended: of direct work with it, those made by hand by their age. */
  readonly reservations: number;
  /** What other rooms kept for jobs of their kinds: `{ call: 3 }`. */
  readonly others: Readonly<Record<string, number>>;
  /** The log files of programs that the removed rows named. */
  readonly files: readonly string[];
};

export const nothing: Removed = {
  ...{ jobs: 0, groups: 0, runs: 0, logs: 0, steps: 0, reservations: 0, others: {}, files: [] },
};

export function add(one: Removed, other: Removed): Removed {
  return {
    jobs: one.jobs + other.jobs,
    groups: one.groups + other.groups,
    runs: one.runs + other.runs,
    logs: one.logs + other.logs,
    steps: one.steps + other.steps,
    reservations: one.reservations + other.reservations,
    others: addOthers(one.others, other.others),
    files: other.files.length === 0 ? one.files : [...one.files, ...other.files],
  };
}

function addOthers(one: Removed["others"], other: Removed["others"]): Removed["others"] {
  const sum: Record<string, number> = { ...one };
  for (const [kind, count] of Object.entries(other)) sum[kind] = (sum[kind] ?? 0) + count;
  return sum;
}

/** The numbers under which the rooms of these kinds keep something for the families' jobs. */
export function othersOf(families: readonly Family[], kinds: readonly string[]): [string, number[]][] {
  if (kinds.length === 0) return [];
  const members = families.flatMap((family) => family.members);
  return kinds.flatMap((kind): [string, number[]][] => {
    const seqs = members.flatMap((member) => (member.kind === kind ? (member.kind_seq ?? []) : []));
    return seqs.length === 0 ? [] : [[kind, [...new Set(seqs)]]];
  });
}

/** What each of the families takes with it, in their order. */
export async function weigh(
  read: ReadRows,
  tenant: string,
  families: readonly Family[],
  kinds: readonly string[],
): Promise<Removed[]> {
  if (families.length === 0) return [];
  const runIds = runIdsOf(families);
  const seqs = seqsOf(families);
  const runs = await read<{ run_id: string; logs: number; log_path: string | null }>(sql`select run.id as run_id,
      (select count(*) from daybook_run_log run_log where run_log.tenant_id = run.tenant_id and run_log.run_id = run.id) as logs,
      (select log_path from daybook_run_command run_command where run_command.tenant_id = run.tenant_id and run_command.run_id = run.id)
        as log_path
    from daybook_run run where run.tenant_id = ${tenant} and run.id ${anyOf("text", runIds)}`);
  const steps = await read<{
    chain_seq: number;
    steps: number;
  }>(sql`select chain_seq, count(*) as steps from daybook_job_step job_step
    where tenant_id = ${tenant} and chain_seq ${anyOf("integer", seqs)} group by chain_seq`);
  const runOf = new Map(runs.map((run) => [run.run_id, run]));
  const stepsOf = new Map(steps.map((row) => [row.chain_seq, row.steps]));
  return families.map((family) => {
    const { group, members } = family;
    const own = members.flatMap((member) => runOf.get(member.run_id ?? "") ?? []);
    return {
      jobs: members.length,
      groups: group === null ? 0 : 1,
      runs: own.length,
      logs: own.reduce((sum, run) => sum + run.logs, 0),
      steps: members.reduce((sum, member) => sum + (stepsOf.get(member.seq) ?? 0), 0),
      reservations: reservationsOf(members).length,
      others: Object.fromEntries(othersOf([family], kinds).map(([kind, { length }]) => [kind, length])),
      files: own.flatMap((run) => run.log_path ?? []),
    };
  });
}

export function rowsOf({ jobs, groups, runs, logs, steps, reservations, others, files }: Removed): number {
  const kept = Object.values(others).reduce((sum, count) => sum + count, 0);
  return jobs + groups + runs + logs + steps + reservations + kept + files.length;
}

export function reservationsOf(members: Family["members"]): number[] {
  return members.flatMap((member) => member.reservation_seq ?? []);
}

export function seqsOf(families: readonly Family[]): number[] {
  return families.flatMap(({ members }) => members.map((member) => member.seq));
}

export function runIdsOf(families: readonly Family[]): string[] {
  return families.flatMap(({ members }) => members.flatMap((member) => member.run_id ?? []));
}
