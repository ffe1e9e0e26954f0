// A verb that somebody calls from elsewhere: what changes the book stands in the audit, with who called it, from where, and what became
// of it.
import type { Access } from "../access/access.ts";
import type { AuditNote } from "../access/audit.ts";
import type { Caller } from "../access/caller.ts";
import type { Book } from "../book/book.ts";
import { asDaybookError, DaybookError, errorCodes } from "../core/error.ts";
import { readRoute } from "../verbs/route.ts";
import type { Call, Verb } from "../verbs/verb.ts";
import type { Asker } from "./app.ts";

export type Calling = {
  readonly key: string;
  readonly verb: Verb;
  readonly caller: Caller;
  readonly book: Book;
  readonly access: Access;
  readonly requestId: string;
  readonly from: string;
};

type Input = Record<string, unknown>;

export async function runAudited(calling: Calling, input: Input, call: Call): Promise<unknown> {
  const { verb, book, access } = calling;
  // It is async so that a verb that throws at once is one that failed.
  const run = async (): Promise<unknown> => verb.run(book, input, call);
  // What workers do is in the runs, with the session of each; a renewal every few seconds would bury what people did.
  if (verb.role === "read" || verb.role === "worker") return run();
  return audited(entryOf(calling, input), access, run);
}

/** Runs what changes something, and notes it. `status` is what its caller is answered with if it succeeds. */
export async function audited<T>(
  entry: AuditNote,
  access: Pick<Access, "note" | "outcome">,
  run: () => Promise<T>,
  status = 200,
): Promise<T> {
  // Both are handed to the writer at once, so that they share a commit; neither is said before both are on disk.
  const [noted, ran] = await Promise.allSettled([access.note(entry), run()]);
  if (noted.status === "rejected") {
    if (ran.status === "rejected") throw ran.reason;
    const why = "it was done, and could not be written into the audit: look before repeating";
    throw new DaybookError("unknown_outcome", why, { cause: noted.reason });
  }
  if (ran.status === "fulfilled") {
    access.outcome(noted.value, { status, code: null });
    return ran.value;
  }
  const { code } = asDaybookError(ran.reason);
  access.outcome(noted.value, { status: errorCodes[code].status, code });
  throw ran.reason;
}

/** What is about all tenants is none's: the tenant whose handle it was asked through does not see it. */
export function tenantOf({ verb, book }: Pick<Calling, "verb" | "book">): string | null {
  return verb.of === "book" ? null : book.tenantId;
}

/** Of a change that no verb stands behind. */
export function plainEntry(verb: string, caller: Caller, { address, requestId }: Asker): AuditNote {
  return { caller, tenant: caller.tenant, verb, subject: null, input: null, from: address, requestId };
}

export function entryOf({ key, verb, caller, book, from, requestId }: Calling, input: Input): AuditNote {
  const [subject] = (readRoute(verb)?.inPath ?? []).map((name) => input[name]);
  return {
    caller,
    tenant: tenantOf({ verb, book }),
    verb: key,
    subject: typeof subject === "string" ? subject : null,
    input,
    from,
    requestId,
  };
}
