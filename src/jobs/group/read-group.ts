// A group as its reader sees it: what it is, and how far its jobs are.
import { DaybookError } from "../../core/error.ts";
import { checkCount } from "../../core/count.ts";
import { limits } from "../../core/limits.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import type { JobStatus } from "../job.ts";
import type { GroupMode, GroupRow, GroupStatus, OnFailure } from "./group.ts";

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

export type GroupPage = { readonly items: readonly GroupRecord[]; readonly next: string | null };

const counts = sql`(select count(*) from job where job.group_seq = g.seq and job.status = `;
const last = sql` and not exists (select 1 from job child where child.retry_of = job.seq and child.group_seq = job.group_seq))`;
const selectGroups = sql`select g.*, ${counts} 'waiting' ${last} as waiting, ${counts} 'queued' ${last} as queued,
    ${counts} 'running' ${last} as running, ${counts} 'completed' ${last} as completed,
    ${counts} 'failed' ${last} as failed, ${counts} 'cancelled' ${last} as cancelled,
    ${counts} 'skipped' ${last} as skipped
  from job_group g`;

type Row = GroupRow & { [Status in JobStatus]: number };

export async function findGroup(store: Store, tenant: string, id: string): Promise<GroupRecord> {
  const [row] = await store.readHeavy<Row>(sql`${selectGroups} where g.tenant_id = ${tenant} and g.id = ${id}`);
  if (row !== undefined) return toRecord(row);
  throw new DaybookError("not_found", `there is no group ${id}`, { details: { id } });
}

/** Newest first. */
export async function listGroups(store: Store, tenant: string, filter: GroupFilter): Promise<GroupPage> {
  refuseUnknown(filter, ["status", "limit", "after"], "the list of groups");
  const limit = checkCount(filter.limit ?? limits.pageDefault, "limit", 1, limits.pageMax);
  const status: Sql = filter.status === undefined ? sql`` : sql`and g.status = ${filter.status}`;
  const after: Sql = filter.after === undefined ? sql`` : sql`and g.id < ${filter.after}`;
  const rows = await store.readHeavy<Row>(sql`${selectGroups} where g.tenant_id = ${tenant} ${status} ${after}
    order by g.id desc limit ${limit + 1}`);
  const items = rows.slice(0, limit).map(toRecord);
  return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

export async function groupMembers(store: Store, tenant: string, id: string): Promise<GroupMember[]> {
  await findGroup(store, tenant, id);
  return store.readHeavy<GroupMember>(sql`select job.group_slot as slot, job.id, job.name, job.status, job.attempt
    from job join job_group g on g.seq = job.group_seq
    where g.tenant_id = ${tenant} and g.id = ${id}
      and not exists (select 1 from job child where child.retry_of = job.seq and child.group_seq = job.group_seq)
    order by job.group_slot`);
}

function toRecord(row: Row): GroupRecord {
  const { waiting, queued, running, completed, failed, cancelled, skipped } = row;
  return {
    id: row.id,
    name: row.name,
    mode: row.mode,
    onFailure: row.on_failure,
    status: row.status,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
    progress: { total: row.slots, waiting, queued, running, completed, failed, cancelled, skipped },
  };
}
