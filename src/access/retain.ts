// Retention of access: the audit by the age that the book's policy says, replies and operations by ages of their own, logins by their
// end. No tenant and nobody by hand removes any of it, because the audit speaks of those who could.
import { limits } from "../core/limits.ts";
import type { Store, Tx } from "../storage/store.ts";
import { removeNotes } from "./audit.ts";
import { removeLogins } from "./login.ts";
import { removeOperations } from "./operations.ts";
import { removeReplies } from "./replies.ts";

/** `auditBy`: what was noted before leaves; null: all of it stays. */
export async function retainAccess(
  store: Store,
  { now, auditBy }: { readonly now: number; readonly auditBy: number | null },
): Promise<{ readonly audit: number }> {
  const day = 86_400_000;
  await inSlices(store, (tx, limit) => removeReplies(tx, now - limits.replyMs, limit));
  await inSlices(store, (tx, limit) => removeOperations(tx, now - limits.operationDays * day, limit));
  await inSlices(store, (tx) => removeLogins(tx, now));
  return { audit: auditBy === null ? 0 : await inSlices(store, (tx, limit) => removeNotes(tx, auditBy, limit)) };
}

/** In transactions of their own, so that other writers have their turn. */
async function inSlices(store: Store, remove: (tx: Tx, limit: number) => Promise<number>): Promise<number> {
  const limit = limits.retainRowsMax;
  let all = 0;
  for (let removed: number = limit; removed >= limit; all += removed)
    removed = await store.write((tx) => remove(tx, limit));
  return all;
}
