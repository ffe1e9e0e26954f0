// Waits for the end of a group. Whoever ends one wakes those who wait, in every process; nothing is polled.
import { durationMs, formatDuration, type Duration } from "../../core/duration.ts";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
import { refuseToBlock } from "../wait-inside.ts";
import { joinWaiters } from "../waiters.ts";
import { findGroup, type GroupRecord } from "./read-group.ts";

export async function groupDone(
  store: Store,
  tenant: string,
  id: string,
  options: { readonly timeout?: Duration },
): Promise<GroupRecord> {
  refuseInsideUnit("done", store, "wait after it, because the jobs begin only then");
  refuseUnknown(options, ["timeout"], "done");
  const timeoutMs = options.timeout === undefined ? limits.durationMsMax : durationMs(options.timeout, "timeout");
  const waiter = joinWaiters(store);
  const timer = store.clock.after(timeoutMs, () => waiter.expire(), { keepAlive: true });
  try {
    for (;;) {
      const news = waiter.news();
      if (waiter.over === "closed")
        throw new DaybookError("closed", `the book was closed while waiting for group ${id}`);
      const [open] = await store.read<{ seq: number }>(
        sql`select seq from job_group where tenant_id = ${tenant} and id = ${id} and status = 'open'`,
      );
      // One that has ended stays as it is, so it is counted once; one that is not there is refused here.
      if (open === undefined) return await findGroup(store, tenant, id);
      await refuseToBlock(store, { tenant, what: `group ${id}`, which: sql`job.group_seq = ${open.seq}` });
      if (waiter.over === "timeout") {
        const { progress } = await findGroup(store, tenant, id);
        const waited = formatDuration(timeoutMs);
        throw new DaybookError("timeout", `group ${id} is still open after ${waited} of waiting; it goes on`, {
          details: { id, progress },
        });
      }
      waiter.waitFor({ group: open.seq });
      if (waiter.over === undefined) await news;
    }
  } finally {
    timer.cancel();
    waiter.leave();
  }
}
