// A verb that somebody calls from elsewhere: what changes the book stands in the audit, with who called it, from where, and what became
// of it.
import type { Access } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import type { Book } from "../book/book.ts";
import { asDaybookError, DaybookError, errorCodes } from "../core/error.ts";
import { readRoute } from "../verbs/route.ts";
import type { Call, Verb } from "../verbs/verb.ts";
import { toWire, type Outputs } from "../verbs/wire.ts";

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

/** A caller that waits for something is answered by then, with what there is or a `timeout`. */
export const waitMsMax = 30_000;

/** Whether the verb goes on behind the answer: what it would do is said at once. */
export function isOperation({ background, destroys }: Verb, input: Input): boolean {
  return background === true && (destroys === undefined || input["apply"] === true);
}

/** Begins what may take minutes; the answer is the operation, to be looked at by its id. Answers are kept in wire form. */
export async function runOperation(
  calling: Calling,
  input: Input,
  { call, outputs: { outputs, defs } }: { readonly call: Call; readonly outputs: Outputs },
): Promise<unknown> {
  const { key, verb, book, access, caller } = calling;
  const [, operation] = await Promise.all([
    note(calling, input),
    access.operations.start({ verb: key, tenant: book.tenantId, caller, input }, async ({ signal, progress }) => {
      const { tenant } = call;
      return toWire(await verb.run(book, input, { tenant, signal, progress, waitMsMax }), outputs[key], defs);
    }),
  ]);
  return toWire(operation, outputs["operations.show"], defs);
}

// It is async so that a verb that throws at once is one that failed.
async function run({ verb, book }: Calling, input: Input, call: Call): Promise<unknown> {
  return verb.run(book, input, call);
}

function note({ key, verb, access, caller, book, from, requestId }: Calling, input: Input): Promise<string> {
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
