// What a user does with groups and sees of them, on the book and in a transaction. A group and its jobs are made in one
// transaction: there is never a group that lacks some of them.
import { conflict, DaybookError, invalid, notFound } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { checkWord, refuseUnknown, refuseUnknownFilter } from "../../core/suggest.ts";
import { shape } from "../../storage/shape.ts";
import { joinSql, rawSql, sql } from "../../storage/sql.ts";
import type { Awaitable, Row, Store, Tx } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import { checkLimit, cutPage, type Page, type PageOptions } from "../../telemetry/report/page.ts";
import type { AnyJob, Given, Job } from "../define.ts";
import type { Engine } from "../engine.ts";
import { newJob, withWarning, type Enqueued } from "../enqueue.ts";
import { insertJobs, type NewJob } from "../insert.ts";
import { jobsChannel, statusNow, type JobStatus } from "../job.ts";
import type { LookUp, Within } from "../jobs.ts";
import { lanesOf } from "../lane.ts";
import { prepareJob, type EnqueueOptions, type Prepared } from "../prepare.ts";
import { awaitEnd, awaitMs, refuseToBlock, type AwaitOptions } from "../waiters.ts";
import { cancelGroup, holdGroup, isEnding } from "./group.ts";
import type { CancelledGroup, GroupMode, GroupRow, GroupStatus, OnFailure } from "./group.ts";

export type GroupOptions = {
  /** For lists; need not be unique. */
  readonly name?: string;
  /** One after another in the order given, or side by side. */
  readonly mode: GroupMode;
  /** When a job fails for good or is cancelled: `stop` cancels the rest, `skip` skips what has not begun, `continue`
   *  lets it run; default `stop`. */
  readonly onFailure?: OnFailure;
};

export type MadeGroup = { readonly id: string; readonly jobs: readonly Enqueued[] };

/** Collects the jobs of a group, in the order in which they are added. */
export type GroupBuilder = {
  add<Input>(definition: Job<Input>, ...given: Given<NoInfer<Input>, EnqueueOptions>): void;
  add(name: string, params?: unknown, options?: EnqueueOptions): void;
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
  add<Input>(id: string, definition: Job<Input>, ...given: Given<NoInfer<Input>, EnqueueOptions>): Promise<Enqueued>;
  add(id: string, name: string, params?: unknown, options?: EnqueueOptions): Promise<Enqueued>;
  /** Cancels what has not begun and asks what runs to end. */
  cancel(id: string): Promise<CancelledGroup>;
};

export type Groups = GroupVerbs & {
  get(id: string): Promise<GroupRecord>;
  list(filter?: GroupFilter): Promise<GroupPage>;
  /** The last job of each slot, in order. */
  members(id: string): Promise<GroupMember[]>;
  /** Waits, from any process, until the last job of a group has ended, whatever its outcome. */
  done(id: string, options?: AwaitOptions): Promise<GroupRecord>;
};

export function groupVerbs({ hooks }: Pick<Engine, "hooks">, lookUp: LookUp, within: Within): GroupVerbs {
  return {
    async create(options, build) {
      const asked: [AnyJob | string, unknown, EnqueueOptions | undefined][] = [];
      let open = true;
      await build({
        add(definition: AnyJob | string, params?: unknown, more?: EnqueueOptions) {
          if (!open) throw invalid("group.add was called after the group was made: use groups.add(id, …)");
          asked.push([definition, params, more]);
        },
      });
      open = false;
      const found = new Map<AnyJob | string, AnyJob>();
      const members: Prepared[] = [];
      for (const [wanted, params, more = {}] of asked) {
        const definition = found.get(wanted) ?? (await lookUp(wanted));
        found.set(wanted, definition);
        members.push(await prepareJob(definition, params, more));
      }
      return within((tx) => createGroup(tx, options, members));
    },
    async add(id: string, definition: AnyJob | string, params?: unknown, options: EnqueueOptions = {}) {
      const prepared = await prepareJob(await lookUp(definition), params, options);
      const [made] = await within((tx) => addToGroup(tx, id, [prepared]));
      return made as Enqueued;
    },
    cancel: (id) => within((tx) => cancelGroup(tx, hooks, id)),
  };
}

export function groupReads(store: Store, tenant: string): Omit<Groups, keyof GroupVerbs> {
  return {
    get: (id) => findGroup(store, tenant, id),
    list: (filter = {}) => listGroups(store, tenant, filter),
    members: (id) => groupMembers(store, tenant, id),
    done: (id, options = {}) => groupDone(store, tenant, id, options),
  };
}

// Whoever ends a group wakes those who wait, in every process.
async function groupDone(store: Store, tenant: string, id: string, options: AwaitOptions): Promise<GroupRecord> {
  refuseInsideUnit("done", store, "wait after it, because the jobs begin only then");
  const what = `group ${id}`;
  return awaitEnd(store, what, awaitMs(options, "done"), async (waited) => {
    const [open] = await store.read<{ seq: number }>(
      sql`select seq from daybook_job_group job_group where tenant_id = ${tenant} and id = ${id} and status = 'open'`,
    );
    // One that has ended stays as it is, so it is counted once; one that is not there is refused here.
    if (open === undefined) return { ended: await findGroup(store, tenant, id) };
    await refuseToBlock(store, { tenant, what, which: sql`job.group_seq = ${open.seq}` });
    if (waited === undefined) return { waitsFor: { group: open.seq } };
    const { progress } = await findGroup(store, tenant, id);
    throw new DaybookError("timeout", `${what} is still open after ${waited} of waiting; it goes on`, {
      details: { id, progress },
    });
  });
}

async function createGroup(tx: Tx, options: GroupOptions, members: readonly Prepared[]): Promise<MadeGroup> {
  const { name, mode, onFailure } = checkGroup(options);
  if (members.length === 0) throw invalid("a group has at least one job: add one in the function given to create");
  checkMembers(members);
  const group = await tx.get<Pick<GroupRow, "seq" | "id" | "mode">>(sql`insert into daybook_job_group
      (tenant_id, id, name, mode, on_failure, slots, created_at)
    values (${tx.tenant}, ${tx.ids()}, ${name}, ${mode}, ${onFailure}, ${members.length}, ${tx.now})
    returning seq, id, mode`);
  if (group === undefined) throw new DaybookError("internal", "the group was not inserted");
  return { id: group.id, jobs: await insertMembers(tx, group, members, 0) };
}

/** Adds jobs behind those that the group has. */
async function addToGroup(tx: Tx, id: string, members: readonly Prepared[]): Promise<readonly Enqueued[]> {
  checkMembers(members);
  const group = await holdGroup(tx, id);
  if (isEnding(group)) {
    const what = group.status === "open" ? "ending" : group.status;
    throw conflict(`group ${id} is ${what} and takes no more jobs: make a new group`, { id, status: group.status });
  }
  if (group.slots + members.length > limits.groupJobsMax) throw tooMany(group.slots + members.length);
  await tx.run(
    sql`update daybook_job_group as job_group set slots = slots + ${members.length} where seq = ${group.seq}`,
  );
  return insertMembers(tx, group, members, group.slots);
}

async function insertMembers(
  tx: Tx,
  group: Pick<GroupRow, "seq" | "id" | "mode">,
  members: readonly Prepared[],
  firstSlot: number,
): Promise<Enqueued[]> {
  const lanes = await lanesOf(
    tx,
    tx.tenant,
    members.map(({ queue }) => queue),
  );
  const rows: NewJob[] = [];
  for (const [index, prepared] of members.entries()) {
    const slot = firstSlot + index;
    const row = newJob(tx, lanes.get(prepared.queue) ?? 0, prepared);
    // In a row, everyone but the first waits for the one before; an open group always has an open job.
    const waits = group.mode === "sequential" && slot > 0;
    const state = waits ? ({ status: "waiting", waits_for: "group", waits_key: group.id } as const) : {};
    rows.push({ ...row, ...state, group_seq: group.seq, group_slot: slot });
  }
  await insertJobs(tx, rows);
  tx.wake(jobsChannel);
  return rows.map(({ id, name, status }, index) =>
    withWarning({ id, name, status, created: true }, members[index] ?? {}),
  );
}

function checkGroup(options: GroupOptions): { name: string | null; mode: GroupMode; onFailure: OnFailure } {
  refuseUnknown(options, ["name", "mode", "onFailure"], "group");
  const { name, mode, onFailure = "stop" } = options;
  return {
    name: name === undefined ? null : checkName(name, "group name"),
    mode: checkWord(mode, ["sequential", "parallel"], "mode"),
    onFailure: checkWord(onFailure, ["stop", "continue", "skip"], "onFailure"),
  };
}

function checkMembers(members: readonly Prepared[]): void {
  if (members.length > limits.groupJobsMax) throw tooMany(members.length);
  // A key may mean that the job already exists, and then it belongs to somebody else.
  for (const { key, idempotency_key, name } of members) {
    if (key === null && idempotency_key === null) continue;
    throw invalid(`job "${name}" of a group has a key: give the group to one job that makes it, and the key to that`);
  }
}

function tooMany(count: number): DaybookError {
  return invalid(`${count} jobs in one group: at most ${limits.groupJobsMax}, make several groups`);
}

export type GroupRecord = {
  readonly id: string;
  readonly name: string | null;
  readonly mode: GroupMode;
  readonly onFailure: OnFailure;
  readonly status: GroupStatus;
  readonly createdAt: number;
  readonly finishedAt: number | null;
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
const counted = ["waiting", "queued", "running", "completed", "failed", "cancelled", "skipped"] as const;
const counts = joinSql(
  counted.map((each, index) => {
    const comma = rawSql(index === 0 ? "" : ",");
    return sql`${comma} count(case when job.seq is not null and ${statusNow} = ${rawSql(`'${each}'`)} then 1 end) as ${rawSql(`"progress.${each}"`)}`;
  }),
);
const membersOf = sql`left join daybook_job job on job.group_seq = g.seq and not exists (
    select 1 from daybook_job child where child.retry_of = job.seq and child.group_seq = job.group_seq)
  left join daybook_line line on line.seq = job.seq left join daybook_run run on run.job_seq = job.seq`;

const statuses: readonly GroupStatus[] = ["open", "completed", "failed", "partial", "cancelled"];

const columns = sql`g.id, g.name, g.mode, g.on_failure as "onFailure", g.status, g.created_at as "createdAt",
  g.finished_at as "finishedAt", g.slots as "progress.total", ${counts}`;

async function findGroup(store: Store, tenant: string, id: string): Promise<GroupRecord> {
  const rows = await store.readHeavy<Row>(sql`select ${columns} from daybook_job_group g ${membersOf}
    where g.tenant_id = ${tenant} and g.id = ${id} group by g.seq`);
  const [group] = shape<GroupRecord>(rows);
  if (group !== undefined) return group;
  throw notFound(`there is no group ${id}`, { id });
}

/** Newest first. */
async function listGroups(store: Store, tenant: string, filter: GroupFilter): Promise<GroupPage> {
  refuseUnknownFilter(filter, ["status", "limit", "after"], "the list of groups");
  const { status, after } = filter;
  const limit = checkLimit(filter.limit);
  const ofStatus = status === undefined ? sql`` : sql`and status = ${checkWord(status, statuses, "group status")}`;
  const older = after === undefined ? sql`` : sql`and id < ${checkCursor(after)}`;
  const rows = await store.readHeavy<Row>(sql`with page as (select seq from daybook_job_group job_group
      where tenant_id = ${tenant} ${ofStatus} ${older} order by id desc limit ${limit + 1})
    select ${columns} from page join daybook_job_group g on g.seq = page.seq ${membersOf} group by g.seq order by g.id desc`);
  return cutPage(shape<GroupRecord>(rows), limit, ({ id }) => id);
}

function checkCursor(after: string): string {
  if (typeof after === "string" && /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(after)) return after;
  throw invalid(`${quote(after)} is not a cursor: give "next" of the page before`);
}

async function groupMembers(store: Store, tenant: string, id: string): Promise<GroupMember[]> {
  await findGroup(store, tenant, id);
  return store.readHeavy<GroupMember>(sql`select job.group_slot as slot, job.id, job.name, ${statusNow} as status,
      job.attempt
    from daybook_job_group g ${membersOf} where g.tenant_id = ${tenant} and g.id = ${id} and job.seq is not null
    order by job.group_slot`);
}
