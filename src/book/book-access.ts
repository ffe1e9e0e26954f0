// What the book says of those that use it from elsewhere. It is about all tenants; of the audit and of operations a tenant sees its own.
import type { Access } from "../access/access.ts";
import type { Audit } from "../access/audit.ts";
import type { Operations } from "../access/operations.ts";
import { tokenVerbs, type Tokens } from "../access/token.ts";
import { DaybookError } from "../core/error.ts";
import type { Rooms } from "../open/rooms.ts";
import { outsideUnits, wrapVerbs, type Of } from "../storage/unit.ts";

type Verbs = { readonly tokens: Tokens; readonly audit: Audit; readonly operations: Operations };

export function accessVerbs({ access: room, store }: Rooms, of: Of, whole: boolean): Verbs {
  const seenBy = whole ? null : of.tenant;
  const { operations } = room.access;
  const tokens = tokenVerbs(store);
  return {
    tokens: outsideUnits(
      of,
      "tokens",
      whole ? tokens : wrapVerbs(tokens, (name) => async () => refuse(`tokens.${name}`)),
    ),
    audit: outsideUnits(of, "audit", { list: (filter) => room.audit.list(seenBy, filter) }),
    operations: outsideUnits(of, "operations", {
      list: (filter) => operations.list(seenBy, filter),
      get: (id) => operations.get(id, seenBy),
      cancel: (id) => operations.cancel(id, seenBy),
    }),
  };
}

/** It is not among what listing or copying the book shows: a tenant's handle could not be copied. */
export function withAccess<Shown extends object>(
  book: Shown,
  { access }: Rooms,
  whole: boolean,
): Shown & { readonly access: Access } {
  const get = (): Access => (whole ? access.access : refuse("access"));
  return Object.defineProperty(book, "access", { get }) as Shown & { readonly access: Access };
}

function refuse(what: string): never {
  throw aboutAllTenants(what);
}

export function aboutAllTenants(what: string): DaybookError {
  return new DaybookError("forbidden", `${what} is about all tenants: call it on the book that open() returned`);
}
