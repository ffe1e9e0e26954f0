// A group and its jobs are made in one transaction: there is never a group that lacks some of them.
import { DaybookError, invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import { newJob, withWarning, type Enqueued } from "../enqueue.ts";
import { insertJobs, type NewJob } from "../insert.ts";
import { jobsChannel } from "../job.ts";
import { lanesOf } from "../lane.ts";
import type { Prepared } from "../prepare.ts";
import { isEnding, lockGroup, type GroupMode, type GroupRow, type OnFailure } from "./group.ts";

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

export async function createGroup(tx: Tx, options: GroupOptions, members: readonly Prepared[]): Promise<MadeGroup> {
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
export async function addToGroup(tx: Tx, id: string, members: readonly Prepared[]): Promise<readonly Enqueued[]> {
  checkMembers(members);
  const group = await lockGroup(tx, id);
  if (isEnding(group)) {
    const what = group.status === "open" ? "ending" : group.status;
    throw new DaybookError("conflict", `group ${id} is ${what} and takes no more jobs: make a new group`, {
      details: { id, status: group.status },
    });
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
  if (mode !== "sequential" && mode !== "parallel") {
    throw invalid(`mode ${JSON.stringify(mode)} is not known: "sequential" or "parallel"`);
  }
  if (onFailure !== "stop" && onFailure !== "continue" && onFailure !== "skip") {
    throw invalid(`onFailure ${JSON.stringify(onFailure)} is not known: "stop", "continue" or "skip"`);
  }
  return { name: name === undefined ? null : checkName(name, "group name"), mode, onFailure };
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
