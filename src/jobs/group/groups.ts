// What a user does with groups, on the book and in a transaction.
import { DaybookError, invalid } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Awaitable, Store } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import type { AnyJob, Given, Job } from "../define.ts";
import type { Engine } from "../engine.ts";
import type { Enqueued } from "../enqueue.ts";
import type { LookUp, Within } from "../jobs.ts";
import { prepareJob, type EnqueueOptions, type Prepared } from "../prepare.ts";
import { awaitEnd, awaitMs, refuseToBlock, type AwaitOptions } from "../waiters.ts";
import { cancelGroup, type CancelledGroup } from "./advance.ts";
import { addToGroup, createGroup, type GroupOptions, type MadeGroup } from "./create-group.ts";
import { findGroup, groupMembers, listGroups } from "./read-group.ts";
import type { GroupFilter, GroupMember, GroupPage, GroupRecord } from "./read-group.ts";

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
