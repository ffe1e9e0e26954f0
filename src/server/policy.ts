// Who may do what: decided by the verb's role and the caller's token alone.
import type { Caller } from "../access/caller.ts";
import { DaybookError } from "../core/error.ts";
import { nameOf, type Role, type Verb } from "../verbs/verb.ts";

const rank = { read: 1, operate: 2, admin: 3 } as const;

/** What is about all tenants is the business of who looks after the book, also where it only reads. */
export function roleFor({ role, of }: Pick<Verb, "role" | "of">): Role {
  return of === "book" ? "admin" : role;
}

export function mayCall(verb: Pick<Verb, "role" | "of">, caller: Pick<Caller, "role" | "tenant">): boolean {
  if (verb.of === "book" && caller.tenant !== null) return false;
  const wanted = roleFor(verb);
  // A worker's token is for its jobs; nobody else settles them.
  const given = caller.role;
  if (wanted === "worker" || given === "worker") return wanted === given;
  return rank[given] >= rank[wanted];
}

export function refuseCall(verb: Pick<Verb, "role" | "of" | "words">, caller: Caller): DaybookError {
  const wanted = `a token of ${verb.of === "book" ? "the book" : "the tenant"} with the role ${roleFor(verb)}`;
  const given = `${caller.tenant === null ? "of the book" : "of a tenant"} with the role ${caller.role}`;
  return new DaybookError("forbidden", `"${nameOf(verb)}" needs ${wanted}, and this one is ${given}`);
}
