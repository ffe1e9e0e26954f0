// What a user does with groups and sees of them, on the book and in a transaction. A group and its jobs are made in one
// transaction: there is never a group that lacks some of them.
import { conflict, DaybookError, invalid, notFound } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { checkWord, refuseUnknown, refuseUnknownFilter } from "../../core/suggest.ts";
import { inSlices } from "../../storage/slices.ts";
import { shape } from "../../storage/shape.ts";
import { joinSql, rawSql, sql } from "../../storage/sql.ts";
import type { Awaitable, Row, Store, Tx } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import { checkLimit, cutPage, notACursor, type Page, type PageOptions } from "../../core/page.ts";
import { prepareJob, type AnyJob, type Given, type Job, type EnqueueOptions, type Prepared } from "../define.ts";
import type { Ports } from "../kind.ts";
import { isFree, newJob, withWarning, insertJobs, type Enqueued, type NewJob } from "../enqueue.ts";
import { endedStatuses, jobsChannel, openStatuses, statusNow, type JobStatus } from "../job.ts";
import type { LookUp, Within } from "../jobs.ts";
import { lanesOf } from "../claim/lane.ts";
import { awaitEnd, awaitMs, refuseToBlock, type AwaitOptions } from "../result.ts";
import { groupEnds, keptNotice, shownNotice, type GroupEnd, type Notice, type ShownNotice } from "../notice.ts";
import { cancelGroup, holdGroup, isEnding } from "./group.ts";
import type { CancelledGroup, GroupMode, GroupRow, GroupStatus, OnFailure } from "./group.ts";

export type GroupOptions = {
  /** For lists; need not be unique. */
  readonly name?: string;
  /** One after another in the order given, or side by side. */
  readonly mode: GroupMode;
  /** When one fails for good or is cancelled: `stop` (default) cancels the rest, `skip` skips it, `continue` lets it run. */
  readonly onFailure?: OnFailure;
  /** Tells a webhook how the group ended: a call that is made in the same commit. */
  readonly notify?: Notice<GroupEnd>;
};

export type MadeGroup = { readonly id: string; readonly jobs: readonly Enqueued[] };

export type GroupBuilder = {
  add<Input>(definition: Job<Input> | string, ...given: Given<NoInfer<Input>, EnqueueOptions>): void;
};

export type GroupVerbs = {
  /** Makes a group and its jobs.
   *
   *  ```ts
   *  await book.groups.create({ mode: "sequential", onFailure: "stop" }, (group) => {
   *    group.add(sendReceipt, { orderId: "o-17" });
   *    group.add(sendReceipt, { orderId: "o-18" }, { attempts: 1 });
   *  });
   *  ``` */
  create(options: GroupOptions, add: (group: GroupBuilder) => Awaitable<void>): Promise<MadeGroup>;
  /** Adds a job behind the others, while the group is open. */
  add<Input>(
    id: string,
    definition: Job<Input> | string,
    ...given: Given<NoInfer<Input>, EnqueueOptions>
  ): Promise<Enqueued>;
  /** Cancels what has not begun and asks what runs to end. */
  cancel(id: string): Promise<CancelledGroup>;
};

export type Groups = GroupVerbs & ReturnType<typeof groupReads>;

export function groupVerbs(ports: Ports, lookUp: LookUp, within: Within): GroupVerbs {
  return {
    async create(options, build) {
      const asked: [AnyJob | string, unknown, EnqueueOptions | undefined][] = [];
      let open = true;
      if (typeof build !== "function") {
        throw invalid(
          `the jobs of the group are ${quote(build)}: give a function, (group) => { group.add(job, params); }`,
        );
      }
      await build({
        add(definition: AnyJob | string, params?: unknown, more?: EnqueueOptions) {
          if (!open) throw invalid("group.add was called after the group was made: use groups.add(id, …)");
          asked.push([definition, params, more]);
        },
      });
      open = false;
      const found = new Map<AnyJob | string, AnyJob>();
      const members: Prepared[] = [];
      await inSlices(asked, async (slice) => {
        for (const [wanted, params, more = {}] of slice) {
          const definition = found.get(wanted) ?? (await lookUp(wanted));
          found.set(wanted, definition);
          members.push(await prepareJob(definition, params, more));
        }
      });
      return within((tx) => createGroup(tx, ports, options, members));
    },
    async add(id: string, definition: AnyJob | string, params?: unknown, options: EnqueueOptions = {}) {
      const prepared = await prepareJob(await lookUp(definition), params, options);
      return within((tx) => addToGroup(tx, id, prepared));
    },
    cancel: (id) => within((tx) => cancelGroup(tx, ports, id)),
  };
}

export function groupReads(store: Store, tenant: string) {
  return {
    get: (id: string) => findGroup(store, tenant, id),
    list: (filter: GroupFilter = {}) => listGroups(store, tenant, filter),
    /** The last job of each slot, in order. */
    members: (id: string) => groupMembers(store, tenant, id),
    /** Waits, from any process, until the last job of a group has ended, whatever its outcome. */
    wait: (id: string, options: AwaitOptions = {}) => waitForGroup(store, tenant, id, options),
  };
}

// The transaction that ends a group wakes the callers that wait, in every process.
async function waitForGroup(store: Store, tenant: string, id: string, options: AwaitOptions): Promise<GroupRecord> {
  refuseInsideUnit("wait", store, "wait after it, because the jobs begin only then");
  const what = `group ${id}`;
  return awaitEnd(store, what, awaitMs(options, "wait"), async (waited) => {
    const [open] = await store.read<{ seq: number }>(sql`select seq
      from daybook_job_group job_group where tenant_id = ${tenant} and id = ${id} and status = 'open'`);
    // One that has ended stays as it is, so it is counted once; one that is not there is refused here.
    if (open === undefined) return { ended: await findGroup(store, tenant, id) };
    await refuseToBlock(store, { tenant, what, which: sql`job.group_seq = ${open.seq}` });
    if (waited === undefined) return { waitsFor: { group: open.seq } };
    const { progress } = await findGroup(store, tenant, id);
    const details = { id, progress };
    throw new DaybookError("timeout", `${what} is still open after ${waited} of waiting; it goes on`, { details });
  });
}

async function createGroup(
  tx: Tx,
  ports: Ports,
  options: GroupOptions,
  members: readonly Prepared[],
): Promise<MadeGroup> {
  refuseUnknown(options, ["name", "mode", "onFailure", "notify"], "group");
  const { name, mode, onFailure = "stop", notify } = options;
  if (name !== undefined) checkName(name, "group name");
  checkWord(mode, ["sequential", "parallel"], "mode");
  checkWord(onFailure, ["stop", "continue", "skip"], "onFailure");
  if (members.length === 0) throw invalid("a group has at least one job: add one in the function given to create");
  refuseTooMany(members.length);
  members.forEach(refuseKeys);
  const told = { ends: groupEnds, what: "the group", tenant: tx.tenant };
  const kept = notify === undefined ? null : keptNotice(ports, notify, told);
  const group = await tx.get<Inserted>(sql`insert into daybook_job_group
      (tenant_id, id, name, mode, on_failure, slots, notify, created_at)
    values (${tx.tenant}, ${tx.ids()}, ${name ?? null}, ${mode}, ${onFailure}, ${members.length}, ${kept}, ${tx.now})
    returning seq, id, mode`);
  const { id } = group as Inserted;
  return { id, jobs: await insertMembers(tx, group as Inserted, members, 0) };
}

type Inserted = Pick<GroupRow, "seq" | "id" | "mode">;

async function addToGroup(tx: Tx, id: string, member: Prepared): Promise<Enqueued> {
  refuseKeys(member);
  const group = await holdGroup(tx, id);
  if (isEnding(group)) {
    const what = group.status === "open" ? "ending" : group.status;
    throw conflict(`group ${id} is ${what} and takes no more jobs: make a new group`, { id, status: group.status });
  }
  refuseTooMany(group.slots + 1);
  await tx.run(sql`update daybook_job_group as job_group set slots = slots + 1 where seq = ${group.seq}`);
  const [made] = await insertMembers(tx, group, [member], group.slots);
  return made as Enqueued;
}

async function insertMembers(
  tx: Tx,
  group: Inserted,
  members: readonly Prepared[],
  first: number,
): Promise<Enqueued[]> {
  const queues = members.map(({ queue }) => queue);
  const lanes = await lanesOf(tx, tx.tenant, queues);
  const made: Enqueued[] = [];
  await inSlices(members, async (slice, from) => {
    const rows = slice.map((prepared, index): NewJob => {
      const slot = first + from + index;
      const row = newJob(tx, lanes.get(prepared.queue) ?? 0, prepared);
      // In a row, everyone but the first waits for the one before; an open group always has an open job.
      const waits = group.mode === "sequential" && slot > 0;
      const state = waits ? ({ status: "waiting", waits_for: "group", waits_key: group.id } as const) : {};
      const { id, name, status } = { ...row, ...state };
      made.push(withWarning({ id, name, status, created: true }, prepared));
      return { ...row, ...state, group_seq: group.seq, group_slot: slot };
    });
    await insertJobs(tx, rows);
  });
  tx.wake(jobsChannel);
  return made;
}

// A key may mean that the job already exists, and then it belongs to another caller.
function refuseKeys(member: Prepared): void {
  if (isFree(member)) return;
  const instead = "give the group to one job that makes it, and the key to that";
  throw invalid(`job "${member.name}" of a group has a key: ${instead}`);
}

function refuseTooMany(count: number): void {
  if (count <= limits.groupJobsMax) return;
  throw invalid(`${count} jobs in one group: at most ${limits.groupJobsMax}, make several groups`);
}

export type GroupRecord = {
  readonly id: string;
  readonly name: string | null;
  readonly mode: GroupMode;
  readonly onFailure: OnFailure;
  readonly status: GroupStatus;
  readonly createdAt: number;
  readonly finishedAt: number | null;
  readonly notify: ShownNotice | null;
  /** How many slots there are, and in which status the last job of each is. */
  readonly progress: { readonly total: number } & { readonly [Status in JobStatus]: number };
};

export type GroupMember = {
  /** Counts from 0, in the order in which they were added. */
  readonly slot: number;
  /** The last job of the slot's chain of retries. */
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  readonly attempt: number;
};

export type GroupFilter = PageOptions & { readonly status?: GroupStatus };
export type GroupPage = Page<GroupRecord>;

// The last job of each slot is read once, for all its statuses.
const counts = [...openStatuses, ...endedStatuses].map((each) => {
  const [status, name] = [rawSql(`'${each}'`), rawSql(`"progress.${each}"`)];
  return sql`, count(case when job.seq is not null and ${statusNow} = ${status} then 1 end) as ${name}`;
});
const membersOf = sql`left join daybook_job job on job.group_seq = g.seq and not exists (
    select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = job.group_seq)
  left join daybook_line line on line.seq = job.seq left join daybook_run run on run.job_seq = job.seq`;

const statuses: readonly GroupStatus[] = ["open", "completed", "failed", "partial", "cancelled"];

const columns = sql`g.id, g.name, g.mode, g.on_failure as "onFailure", g.status, g.created_at as "createdAt",
  g.finished_at as "finishedAt", g.notify as "notify json", g.slots as "progress.total" ${joinSql(counts)}`;

async function findGroup(store: Store, tenant: string, id: string): Promise<GroupRecord> {
  const rows = await store.readHeavy<Row>(sql`select ${columns} from daybook_job_group g ${membersOf}
    where g.tenant_id = ${tenant} and g.id = ${id} group by g.seq`);
  const [group] = toGroups(rows);
  if (group !== undefined) return group;
  throw notFound(`there is no group ${id}`, { id });
}

function toGroups(rows: readonly Row[]): GroupRecord[] {
  return shape<GroupRecord>(rows).map((each) => ({ ...each, notify: shownNotice(each.notify) }));
}

async function listGroups(store: Store, tenant: string, filter: GroupFilter): Promise<GroupPage> {
  refuseUnknownFilter(filter, ["status", "limit", "after"], "the list of groups");
  const { status, after } = filter;
  const limit = checkLimit(filter.limit);
  const ofStatus = status === undefined ? sql`` : sql`and status = ${checkWord(status, statuses, "group status")}`;
  if (after !== undefined && !/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(after)) throw notACursor(after);
  const older = after === undefined ? sql`` : sql`and id < ${after}`;
  const rows = await store.readHeavy<Row>(sql`with page as (select seq from daybook_job_group job_group
      where tenant_id = ${tenant} ${ofStatus} ${older} order by id desc limit ${limit + 1})
    select ${columns} from page join daybook_job_group g on g.seq = page.seq ${membersOf} group by g.seq order by g.id desc`);
  return cutPage(toGroups(rows), limit, ({ id }) => id);
}

async function groupMembers(store: Store, tenant: string, id: string): Promise<GroupMember[]> {
  await findGroup(store, tenant, id);
  return store.readHeavy<GroupMember>(sql`select job.group_slot as slot, job.id, job.name, ${statusNow} as status,
      job.attempt
    from daybook_job_group g ${membersOf} where g.tenant_id = ${tenant} and g.id = ${id} and job.seq is not null
    order by job.group_slot`);
}
