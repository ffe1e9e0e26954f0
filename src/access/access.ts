// The room of access as the book opens it: who calls, what they changed, what they were answered, what still runs.
import type { Store, Tx } from "../storage/store.ts";
import { openAudit, type Auditor } from "./audit.ts";
import { openCallers, type Callers } from "./caller.ts";
import { openLogins, type Logins } from "./login.ts";
import { freeReplies, openReplies, type Replies } from "./replies.ts";
import { loseOperations, openOperations, type Operator } from "./operations.ts";

/** What a server stands on. It is on the book that `open()` returned, and on no tenant's handle. */
export type Access = Pick<Callers, "identify" | "identifyCookie"> &
  Logins &
  Pick<Auditor, "note" | "outcome"> & { readonly replies: Replies; readonly operations: Operator };

export type AccessRoom = {
  readonly access: Access;
  readonly audit: Auditor;
  readonly callers: Callers;
};

export function openAccess(store: Store, session: () => number | null): AccessRoom {
  const callers = openCallers(store);
  const audit = openAudit(store);
  const { identify, identifyCookie } = callers;
  const { note, outcome } = audit;
  const replies = openReplies(store, session);
  const operations = openOperations(store, session);
  const access: Access = { identify, identifyCookie, ...openLogins(store), note, outcome, replies, operations };
  return { access, audit, callers };
}

/** What runs is ended first, then what is known of it is written. */
export async function closeAccess({ access, audit, callers }: AccessRoom): Promise<void> {
  await access.operations.close();
  await callers.close();
  await audit.close();
}

/** In the transaction that ends a session: what its process had begun is free, or lost. */
export async function endAccessOf(tx: Tx, sessionSeq: number): Promise<void> {
  await freeReplies(tx, sessionSeq);
  await loseOperations(tx, sessionSeq);
}
