// A bundle is what leaves together or stays together: a chain of retries, or a group with the chains of all its jobs. One
// statement reads it twice: off the event loop to find it, and in the transaction that removes it.
import { account, removeRunsOfJobs } from "../../telemetry/retention/remove.ts";
import { inSlices } from "../../storage/slices.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { anyOf, skipLocked } from "../../storage/word.ts";
import { runIsKept, runIsPinned } from "../../telemetry/run.ts";
import type { ReadRows } from "../definition.ts";
import type { Ports } from "../kind.ts";
import { jobNow, seqsOf } from "../job.ts";
import type { Leaving } from "./retain.ts";

/** What a bundle is found by: its first job, and its group if it is one. */
type Root = { readonly head: number; readonly group: number | null };

type Member = Root & {
  readonly seq: number;
  readonly createdAt: number;
  readonly kind: string | null;
  readonly kindSeq: number | null;
  readonly runId: string | null;
  readonly logs: number;
  readonly steps: number;
  readonly file: string | null;
  readonly reservation: number | null;
  /** 1 when it has ended, fits a rule, and no room needs it. */
  readonly leaves: number;
};

export type Bundle = readonly Member[];
type Range = { readonly after: number; readonly to: number };

export type Removed = ReturnType<typeof countRemoved>;

/** The bundles that may leave among the jobs of a range, in the order of their first jobs, at which a group is found. */
export async function findBundles(read: ReadRows, leaving: Leaving, { after, to }: Range): Promise<Bundle[]> {
  const heads = await read<Root>(sql`select job.seq as head, job.group_seq as "group"
    from daybook_job job left join daybook_line line on line.seq = job.seq left join daybook_run run on run.job_seq = job.seq
    where job.seq > ${after} and job.seq <= ${to} and job.tenant_id = ${leaving.tenant} and job.retry_of is null
      and line.seq is null and ${leaving.heads}
      and (job.group_seq is null or not exists (
        select 1 from daybook_job earlier where earlier.group_seq = job.group_seq and earlier.seq < job.seq))`);
  return readBundles(read, leaving, heads, runIsPinned);
}

async function readBundles(read: ReadRows, leaving: Leaving, roots: readonly Root[], runStays: Sql): Promise<Bundle[]> {
  const groups = groupsOf(roots);
  const first =
    groups.length === 0
      ? []
      : await read<Root>(sql`select seq as head, group_seq as "group" from daybook_job
    where group_seq ${anyOf("integer", groups)} and retry_of is null order by seq`);
  const chains = [...roots.filter(({ group }) => group === null), ...first].toSorted((a, b) => a.head - b.head);
  const members: Member[] = [];
  // A large group is one bundle.
  await inSlices(chains, async (slice) => void members.push(...(await readMembers(read, leaving, slice, runStays))));
  const bundles = [...Map.groupBy(members, ({ head, group }) => (group === null ? head : -group)).values()];
  return bundles.filter((bundle) => bundle.every(({ leaves }) => leaves === 1));
}

/** The jobs of these chains of retries, each found by its first job. */
async function readMembers(
  read: ReadRows,
  leaving: Leaving,
  chains: readonly Root[],
  runStays: Sql,
): Promise<Member[]> {
  // A chain is followed by the index that allows each job one retry. One that was tried again by hand after its group had ended is
  // of no group, and leaves with its chain. `exists` is spelt as a value: PostgreSQL would read a whole table to answer many.
  return read<Member>(sql`with recursive chain (head, group_seq, seq) as (
      select seq, group_seq, seq from daybook_job where seq ${anyOf(
        "integer",
        chains.map(({ head }) => head),
      )}
      union all select chain.head, chain.group_seq, job.seq from chain cross join daybook_job job
      where job.retry_of = chain.seq
    )
    select job.seq, chain.head, chain.group_seq as "group", job.created_at as "createdAt", job.kind,
      job.kind_seq as "kindSeq", job.run_id as "runId",
      (select count(*) from daybook_run_log run_log
        where run_log.tenant_id = job.tenant_id and run_log.run_id = job.run_id) as logs,
      (select count(*) from daybook_job_step job_step
        where job_step.tenant_id = job.tenant_id and job_step.chain_seq = job.seq) as steps,
      command.log_path as file, reservation.seq as reservation,
      case when job.finished_at is not null
        and (job.group_seq is not distinct from chain.group_seq or (job.group_seq is null and job.retry_of is not null))
        -- The program may still live: its row is how it is found.
        and (command.run_id is null or command.ended_at is not null)
        and (select 1 from daybook_job_pin pin where pin.job_seq = job.seq) is null
        and (select 1 from daybook_job_key held
          where held.job_seq = job.seq and (held.until_at is null or held.until_at > ${leaving.now})) is null
        and (select 1 from daybook_run run where run.job_seq = job.seq and ${runStays}) is null
        and ((select 1 from daybook_job child where child.retry_of = job.seq) is not null or (${leaving.last}))
        then 1 else 0 end as leaves
    from chain cross join ${jobNow} left join daybook_job_group job_group on job_group.seq = chain.group_seq
    left join daybook_run_command command on command.tenant_id = job.tenant_id and command.run_id = job.run_id
    left join daybook_reservation reservation
      on job.kind = 'direct' and reservation.seq = job.kind_seq and reservation.status <> 'active'
    where job.seq = chain.seq order by chain.head, job.seq`);
}

/** What leaves with these bundles. `kinds` are those for whose jobs other rooms keep something. */
export function countRemoved(bundles: readonly Bundle[], kinds: readonly string[]) {
  const members = bundles.flat();
  const others = keptFor(members, kinds).map(([kind, seqs]) => [kind, seqs.length] as const);
  return {
    jobs: members.length,
    groups: groupsOf(members).length,
    runs: members.filter(({ runId }) => runId !== null).length,
    logs: members.reduce((sum, { logs }) => sum + logs, 0),
    steps: members.reduce((sum, { steps }) => sum + steps, 0),
    /** Reservations that have ended: of direct work with it, those made by hand by their age. */
    reservations: members.filter(({ reservation }) => reservation !== null).length,
    /** What other rooms kept for jobs of their kinds: `{ call: 3 }`. */
    others: Object.fromEntries(others) as Readonly<Record<string, number>>,
    /** The log files of programs that the removed rows named. */
    files: members.flatMap(({ file }) => file ?? []),
  };
}

/** Removes the bundles that may still leave and all that is theirs, with a row that says so. */
export async function removeBundles(
  tx: Tx,
  { kinds }: Ports,
  leaving: Leaving,
  found: readonly Bundle[],
): Promise<Removed> {
  const bundles = await lockBundles(tx, leaving, found);
  const removed = countRemoved(bundles, []);
  if (removed.jobs === 0) return removed;
  const members = bundles.flat();
  await inSlices(members, (slice) => removeMembers(tx, leaving, slice));
  await tx.run(sql`delete from daybook_job_group where seq ${anyOf("integer", groupsOf(members))}`);
  const others: Record<string, number> = {};
  for (const [kind, seqs] of keptFor(members, Object.keys(kinds))) {
    const gone = await kinds[kind]?.removed?.(tx, leaving.tenant, seqs);
    if (gone !== undefined) others[kind] = gone;
  }
  const { jobs: gone, runs, logs, reservations: ended } = removed;
  const [made, { reason }] = [members.map(({ createdAt }) => createdAt), leaving];
  await account(tx, leaving.tenant, [
    { what: "job", reason, removed: gone, made },
    { what: "run", reason, removed: runs, made },
    { what: "log", reason, removed: logs, made },
    { what: "reservation", reason, removed: ended, made },
  ]);
  return { ...removed, others };
}

async function removeMembers(tx: Tx, { tenant }: Leaving, members: readonly Member[]): Promise<void> {
  const jobs = anyOf("integer", seqsOf(members));
  const runIds = members.flatMap(({ runId }) => runId ?? []);
  const reservations = members.flatMap(({ reservation }) => reservation ?? []);
  await tx.run(sql`delete from daybook_job_step where tenant_id = ${tenant} and chain_seq ${jobs}`);
  await tx.run(sql`delete from daybook_run_command where tenant_id = ${tenant} and run_id ${anyOf("text", runIds)}`);
  await removeRunsOfJobs(tx, tenant, runIds);
  await tx.run(sql`delete from daybook_job_key where job_seq ${jobs}`);
  await tx.run(sql`delete from daybook_job where seq ${jobs}`);
  await tx.run(sql`delete from daybook_reservation where seq ${anyOf("integer", reservations)}`);
}

// Between finding and removing, a job may have been retried or a group added to. On PostgreSQL that transaction holds the
// parent or the group, so what is locked here and read after that stays as it is. What another transaction holds is left to the
// next look: no transaction should wait for this one, nor this one for one that uses a job.
async function lockBundles(tx: Tx, leaving: Leaving, found: readonly Bundle[]): Promise<Bundle[]> {
  const jobs = await tx.all<{ seq: number }>(sql`select seq from daybook_job
    where seq ${anyOf("integer", seqsOf(found.flat()))} order by seq ${skipLocked}`);
  const groups = await tx.all<{ seq: number }>(sql`select seq from daybook_job_group
    where seq ${anyOf("integer", groupsOf(found.flat()))} order by seq ${skipLocked}`);
  const [ourJobs, ourGroups] = [new Set(seqsOf(jobs)), new Set(seqsOf(groups))];
  const roots = found.flatMap((bundle) => bundle.slice(0, 1));
  const bundles = await readBundles((statement) => tx.all(statement), leaving, roots, runIsKept);
  return bundles.filter((bundle) =>
    bundle.every(({ seq, group }) => ourJobs.has(seq) && (group === null || ourGroups.has(group))),
  );
}

function groupsOf(roots: readonly Root[]): number[] {
  return [...new Set(roots.flatMap(({ group }) => group ?? []))];
}

/** The numbers under which the rooms of these kinds keep something for the jobs. */
function keptFor(members: Bundle, kinds: readonly string[]): [string, number[]][] {
  return kinds.flatMap((kind): [string, number[]][] => {
    const seqs = new Set(members.flatMap((member) => (member.kind === kind ? (member.kindSeq ?? []) : [])));
    return seqs.size === 0 ? [] : [[kind, [...seqs]]];
  });
}

/** Retention leaves an ended job that a room above still needs, until the pin is gone. */
export async function pinJob(tx: Tx, { seq }: { readonly seq: number }): Promise<void> {
  await tx.run(sql`insert into daybook_job_pin (job_seq) values (${seq}) on conflict do nothing`);
}

export async function unpinJob(tx: Tx, id: string): Promise<void> {
  await tx.run(sql`delete from daybook_job_pin where job_seq = (select seq from daybook_job where id = ${id})`);
}
