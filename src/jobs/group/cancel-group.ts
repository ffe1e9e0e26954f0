import { DaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Tx } from "../../storage/store.ts";
import type { JobHooks } from "../hooks.ts";
import { cancelRest, goOn } from "./advance.ts";
import { lockGroup } from "./group.ts";

export type CancelledGroup = { readonly id: string; readonly status: "cancelled" | "cancelling" };

/** Cancels what has not begun and asks what runs to end; the group ends with the last of them. */
export async function cancelGroup(tx: Tx, hooks: JobHooks, id: string): Promise<CancelledGroup> {
  const group = await lockGroup(tx, id);
  if (group.status !== "open") {
    throw new DaybookError("conflict", `group ${id} is ${group.status} and cannot be cancelled`, {
      details: { id, status: group.status },
    });
  }
  group.cancel_requested_at ??= tx.now;
  await tx.run(
    sql`update daybook_job_group as job_group set cancel_requested_at = ${group.cancel_requested_at} where seq = ${group.seq}`,
  );
  await cancelRest(tx, hooks, group);
  await goOn(tx, group);
  const left = await tx.get(sql`select seq from daybook_line where group_seq = ${group.seq} limit 1`);
  return { id, status: left === undefined ? "cancelled" : "cancelling" };
}
