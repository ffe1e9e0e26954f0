// Waits for the end of a group. Whoever ends one wakes those who wait, in every process.
import { DaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import { refuseToBlock } from "../wait-inside.ts";
import { awaitEnd, awaitMs, type AwaitOptions } from "../waiters.ts";
import { findGroup, type GroupRecord } from "./read-group.ts";

export async function groupDone(store: Store, tenant: string, id: string, options: AwaitOptions): Promise<GroupRecord> {
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
