// A family is what leaves together or stays together: a chain of retries, or a group with the chains of all its jobs. It is
// read twice with the same statements: off the event loop to find it, and in the transaction that removes it.
import { sql } from "../../storage/sql.ts";
import { anyOf } from "../../storage/word.ts";
import type { ReadRows } from "../definition/stored-definition.ts";
import { statusNow, type JobRow } from "../job.ts";
import { fits, type Rule } from "./rule.ts";

export type Member = Pick<
  JobRow,
  "seq" | "retry_of" | "group_seq" | "lane_seq" | "name" | "status" | "created_at" | "finished_at" | "run_id"
> &
  Pick<JobRow, "kind" | "kind_seq"> & {
    /** 1 while its key is taken: until the work is done, or for a window of time. */
    readonly keyed: number | null;
    readonly key_until: number | null;
    /** 1 while a room above needs it. */
    readonly pinned: number | null;
    /** The program of its run may still live: its row is how it is found. */
    readonly program_open: number | null;
    /** The reservation of direct work. */
    readonly reservation_seq: number | null;
  };

export type Family = {
  /** The first job of the chain, when it is one of no group. */
  readonly head: number | null;
  readonly group: number | null;
  readonly groupEndedAt: number | null;
  readonly members: readonly Member[];
};

/** What families are asked for by. */
export type Roots = { readonly heads: readonly number[]; readonly groups: readonly number[] };

/** The roots among the jobs of a range. A group is found at its first job and nowhere else. */
export async function findRoots(
  read: ReadRows,
  rule: Rule,
  { after, to }: { after: number; to: number },
): Promise<Roots> {
  const rows = await read<{ seq: number; group_seq: number | null }>(sql`select job.seq, job.group_seq
    from daybook_job job left join daybook_line line on line.seq = job.seq left join daybook_run run on run.job_seq = job.seq
    where job.seq > ${after} and job.seq <= ${to} and job.tenant_id = ${rule.tenant} and job.retry_of is null
      and line.seq is null and coalesce(run.ended_at, job.cancelled_at) <= ${rule.endedBy}
      ${rule.firesOfApps ? sql`and job.kind = 'schedule' and job.app is not null` : sql``}
      and (job.group_seq is null or not exists (
        select 1 from daybook_job earlier where earlier.group_seq = job.group_seq and earlier.seq < job.seq))
    order by job.seq`);
  return {
    heads: rows.filter((row) => row.group_seq === null).map((row) => row.seq),
    groups: rows.flatMap((row) => row.group_seq ?? []),
  };
}

/** Those that are still there, in the order of their first jobs. */
export async function readFamilies(read: ReadRows, { heads, groups }: Roots): Promise<Family[]> {
  if (heads.length + groups.length === 0) return [];
  // A chain is followed by the index that allows each job one retry.
  const rows = await read<Member & { head: number; root_group: number | null }>(sql`
    with recursive root (seq, group_seq) as (
      select seq, group_seq from daybook_job where seq ${anyOf("integer", heads)}
      union all select seq, group_seq from daybook_job where group_seq ${anyOf("integer", groups)} and retry_of is null
    ), chain (head, root_group, seq) as (
      select seq, group_seq, seq from root
      union all select chain.head, chain.root_group, job.seq from chain cross join daybook_job job
      where job.retry_of = chain.seq
    )
    select chain.head, chain.root_group, job.seq, job.retry_of, job.group_seq, job.lane_seq, job.name,
      ${statusNow} as status, job.created_at,
      case when line.seq is null then coalesce(run.ended_at, job.cancelled_at) end as finished_at,
      run.id as run_id, job.kind, job.kind_seq,
      (select 1 from daybook_job_key held where held.job_seq = job.seq) as keyed,
      (select until_at from daybook_job_key held where held.job_seq = job.seq) as key_until,
      (select 1 from daybook_job_pin pin where pin.job_seq = job.seq) as pinned,
      (select 1 from daybook_run_command run_command where run_command.tenant_id = job.tenant_id and run_command.run_id = run.id
        and run_command.ended_at is null) as program_open,
      (select reservation.seq from daybook_reservation reservation where job.kind = 'direct' and reservation.seq = job.kind_seq
        and reservation.status <> 'active') as reservation_seq
    from chain cross join daybook_job job left join daybook_line line on line.seq = job.seq
    left join daybook_run run on run.job_seq = job.seq
    where job.seq = chain.seq order by chain.head, job.seq`);
  const ended = await readGroups(read, groups);
  const found = new Map<string, Family & { members: Member[] }>();
  for (const { head, root_group: group, ...member } of rows) {
    const key = group === null ? `job ${head}` : `group ${group}`;
    const family = found.get(key);
    if (family !== undefined) family.members.push(member);
    else {
      const groupEndedAt = group === null ? null : (ended.get(group) ?? null);
      found.set(key, { head: group === null ? head : null, group, groupEndedAt, members: [member] });
    }
  }
  return [...found.values()];
}

/** Whether all of it has ended, fits the rule, and is needed by nobody. */
export function mayLeave(rule: Rule, { group, groupEndedAt, members }: Family): boolean {
  if (group !== null && (groupEndedAt === null || groupEndedAt > rule.endedBy)) return false;
  const retried = new Set(members.map((member) => member.retry_of));
  return members.every((member) => {
    const { keyed, key_until: until } = member;
    if (
      member.finished_at === null ||
      member.program_open !== null ||
      member.pinned !== null ||
      !belongs(member, group) ||
      member.seq === rule.pinned
    )
      return false;
    if (keyed !== null && (until === null || until > rule.now)) return false;
    return retried.has(member.seq) || fits(rule, member);
  });
}

/** Whether none of its runs is among those that stay. */
export function isFree({ members }: Family, kept: ReadonlySet<string>): boolean {
  return kept.size === 0 || !members.some((member) => kept.has(member.run_id ?? ""));
}

// One that was tried again by hand after the group had ended is of no group, and leaves with its chain.
function belongs({ group_seq: own, retry_of: parent }: Member, group: number | null): boolean {
  return own === group || (own === null && parent !== null);
}

async function readGroups(read: ReadRows, groups: readonly number[]): Promise<Map<number, number | null>> {
  if (groups.length === 0) return new Map();
  const rows = await read<{ seq: number; finished_at: number | null }>(
    sql`select seq, finished_at from daybook_job_group job_group where seq ${anyOf("integer", groups)}`,
  );
  return new Map(rows.map((row) => [row.seq, row.finished_at]));
}
