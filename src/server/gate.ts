// Who may pass: a request is first that of somebody, and then the policy says whether the verb is theirs.
import type { Caller } from "../access/caller.ts";
import type { Book } from "../book/book.ts";
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { Verb } from "../verbs/verb.ts";
import type { Asking } from "./book-routes.ts";
import { countFailures, credentialOf, identify, unknownCaller, type Credential, type Failures } from "./caller.ts";
import { mayCall, refuseCall } from "./policy.ts";
import { serveBook } from "./served-book.ts";

/** Who asks for what: the caller, how they were known, and the tenant that they named or are bound to. */
export type Known = { readonly caller: Caller; readonly credential: Credential; readonly tenant: string | null };

/** A verb, or a route that is like one. */
export type Wanted = Pick<Verb, "role" | "of" | "words">;

export type Gate = {
  readonly failures: Failures;
  known(context: Asking): Promise<Known>;
  /** `tenant` is the one that a path names. */
  admit(context: Asking, wanted: Wanted, tenant?: string): Promise<Known>;
  /** The whole book is shown to who looks after all of it and names no tenant. */
  bookFor(wanted: Pick<Verb, "of">, known: Known): Book;
  stillKnown(known: Known): Promise<boolean>;
};

export function createGate(book: Book, { readOnly = false }: { readonly readOnly?: boolean }): Gate {
  const { access } = book;
  const served = serveBook(book);
  const failures = countFailures();

  async function known({ req, env }: Asking): Promise<Known> {
    const credential = credentialOf(req.raw.headers);
    if (credential === undefined) throw unknownCaller("nobody is named");
    const caller = await identify(access, credential);
    if (caller === null) return failures.refuse(env.address, `the ${credential.kind} is unknown, expired or revoked`);
    return { caller, credential, tenant: tenantOf(caller, req.raw.headers.get("daybook-tenant")) };
  }

  return {
    failures,
    known,
    async admit(context, wanted, tenant) {
      const found = await known(context);
      const { caller } = found;
      if (!mayCall(wanted, caller)) throw refuseCall(wanted, caller);
      if (readOnly && wanted.role !== "read" && context.req.method !== "GET" && context.req.method !== "HEAD") {
        throw new DaybookError("forbidden", "this server is read-only: change the book by another way");
      }
      return tenant === undefined ? found : { ...found, tenant: tenantOf(caller, tenant) };
    },
    bookFor({ of }, { caller, tenant }) {
      if (of === "book" || (tenant === null && caller.role === "admin")) return served.whole;
      return served.tenant(tenant ?? book.tenantId);
    },
    stillKnown: async ({ credential }) => (await identify(access, credential)) !== null,
  };
}

function tenantOf({ tenant }: Caller, named: string | null): string | null {
  if (named === null || named === tenant) return tenant;
  if (tenant !== null) throw new DaybookError("forbidden", `this token is not of the tenant ${quote(named)}`);
  return named;
}
