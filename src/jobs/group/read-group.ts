// A group as its reader sees it: what it is, and how far its jobs are.
import { DaybookError, invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { checkWord, refuseUnknown } from "../../core/suggest.ts";
import { shape } from "../../storage/shape.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Row, Store } from "../../storage/store.ts";
import { checkLimit, cutPage, type Page } from "../../telemetry/report/page.ts";
import { statusNow, type JobStatus } from "../job.ts";
import type { GroupMode, GroupStatus, OnFailure } from "./group.ts";

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

export type GroupFilter = {
  readonly status?: GroupStatus;
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
};

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

export async function findGroup(store: Store, tenant: string, id: string): Promise<GroupRecord> {
  const rows = await store.readHeavy<Row>(sql`select ${columns} from daybook_job_group g ${membersOf}
    where g.tenant_id = ${tenant} and g.id = ${id} group by g.seq`);
  const [group] = shape<GroupRecord>(rows);
  if (group !== undefined) return group;
  throw new DaybookError("not_found", `there is no group ${id}`, { details: { id } });
}

/** Newest first. */
export async function listGroups(store: Store, tenant: string, filter: GroupFilter): Promise<GroupPage> {
  refuseUnknown(filter, ["status", "limit", "after"], "the list of groups");
  const limit = checkLimit(filter.limit);
  const status: Sql =
    filter.status === undefined ? sql`` : sql`and status = ${checkWord(filter.status, statuses, "group status")}`;
  const after: Sql = filter.after === undefined ? sql`` : sql`and id < ${checkCursor(filter.after)}`;
  const rows = await store.readHeavy<Row>(sql`with page as (select seq from daybook_job_group job_group
      where tenant_id = ${tenant} ${status} ${after} order by id desc limit ${limit + 1})
    select ${columns} from page join daybook_job_group g on g.seq = page.seq ${membersOf} group by g.seq order by g.id desc`);
  return cutPage(shape<GroupRecord>(rows), limit, ({ id }) => id);
}

function checkCursor(after: string): string {
  if (typeof after === "string" && /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(after)) return after;
  throw invalid(`${quote(after)} is not a cursor: give "next" of the page before`);
}

export async function groupMembers(store: Store, tenant: string, id: string): Promise<GroupMember[]> {
  await findGroup(store, tenant, id);
  return store.readHeavy<GroupMember>(sql`select job.group_slot as slot, job.id, job.name, ${statusNow} as status,
      job.attempt
    from daybook_job_group g ${membersOf} where g.tenant_id = ${tenant} and g.id = ${id} and job.seq is not null
    order by job.group_slot`);
}
