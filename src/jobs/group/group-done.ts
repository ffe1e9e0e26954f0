// Waits for the end of a group. Whoever ends one wakes those who wait, in every process; nothing is polled.
import { durationMs, formatDuration, type Duration } from "../../core/duration.ts";
import { DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import type { Store } from "../../storage/store.ts";
import { refuseInsideUnit } from "../../storage/unit.ts";
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
      waiter.waitFor("any");
      if (waiter.over === "closed")
        throw new DaybookError("closed", `the book was closed while waiting for group ${id}`);
      const group = await findGroup(store, tenant, id);
      if (group.status !== "open") return group;
      if (waiter.over === "timeout") {
        const waited = formatDuration(timeoutMs);
        throw new DaybookError("timeout", `group ${id} is still open after ${waited} of waiting; it goes on`, {
          details: { id, progress: group.progress },
        });
      }
      if (waiter.over === undefined) await news;
    }
  } finally {
    timer.cancel();
    waiter.leave();
  }
}
