// A verb that somebody calls from elsewhere: what changes the book stands in the audit, with who called it, from where, and what became
// of it.
import type { Access } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import type { Book } from "../book/book.ts";
import { asDaybookError, DaybookError, errorCodes } from "../core/error.ts";
import { readRoute } from "../verbs/route.ts";
import type { Call, Verb } from "../verbs/verb.ts";

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
  if (verb.role === "read") return verb.run(book, input, call);
  // Both are handed to the writer at once, so that they share a commit; neither is said before both are on disk.
  const [noted, ran] = await Promise.allSettled([note(calling, input), run(calling, input, call)]);
  if (noted.status === "rejected") {
    if (ran.status === "rejected") throw ran.reason;
    const why = "it was done, and could not be written into the audit: look before repeating";
    throw new DaybookError("unknown_outcome", why, { cause: noted.reason });
  }
  if (ran.status === "fulfilled") {
    access.outcome(noted.value, { status: 200, code: null });
    return ran.value;
  }
  const { code } = asDaybookError(ran.reason);
  access.outcome(noted.value, { status: errorCodes[code].status, code });
  throw ran.reason;
}

// It is async so that a verb that throws at once is one that failed.
async function run({ verb, book }: Calling, input: Input, call: Call): Promise<unknown> {
  return verb.run(book, input, call);
}

export function note({ key, verb, access, caller, book, from, requestId }: Calling, input: Input): Promise<string> {
  const [subject] = (readRoute(verb)?.inPath ?? []).map((name) => input[name]);
  return access.note({
    caller,
    tenant: book.tenantId,
    verb: key,
    subject: typeof subject === "string" ? subject : null,
    input,
    from,
    requestId,
  });
}
