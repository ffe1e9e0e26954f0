// Tokens: what programs and people show to use the book from elsewhere. The secret is shown once; the book keeps its hash.
import { checkCount } from "../core/count.ts";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid, notFound } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkName, checkTenant } from "../core/name.ts";
import { checkPage, type Page, type PageOptions } from "../core/page.ts";
import { quote } from "../core/quote.ts";
import { hashSecret, newToken } from "../core/secret.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { shape, shapePage } from "../storage/shape.ts";
import { sql } from "../storage/sql.ts";
import type { Row, Store } from "../storage/store.ts";
import { accessChannel } from "./caller.ts";

export const roles = ["read", "operate", "admin", "worker"] as const;
/** `read` changes nothing; `operate` makes and steers work; `admin` looks after the book; `worker` runs jobs from elsewhere. */
export type Role = (typeof roles)[number];

export type TokenOptions = {
  readonly role: Role;
  /** The tenant that it is of; null: the whole book. */
  readonly tenant: string | null;
  /** What people call it; default: its id. */
  readonly name?: string;
  /** From now on; without it, it lasts until it is revoked. */
  readonly expires?: Duration;
  /** Of a worker: whose jobs it may take; default all. */
  readonly queues?: readonly string[];
  readonly names?: readonly string[];
};

export type TokenRecord = {
  /** Public: the secret begins with it. */
  readonly id: string;
  readonly name: string;
  readonly tenant: string | null;
  readonly role: Role;
  readonly queues: readonly string[] | null;
  readonly names: readonly string[] | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  /** To about a minute. */
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
};

/** `secret` is shown this once. */
export type MadeToken = TokenRecord & { readonly secret: string };

export type TokenFilter = PageOptions & {
  readonly tenant?: string;
  /** Also those that were revoked or have expired. */
  readonly all?: boolean;
};

export type Tokens = {
  /** Makes a token, and shows its secret this once.
   *
   *  ```ts
   *  const { secret } = await book.tokens.create({ name: "reports", tenant: "acme", role: "read", expires: "90d" });
   *  ``` */
  create(options: TokenOptions): Promise<MadeToken>;
  /** The newest first; those that still let somebody in, unless `all`. */
  list(filter?: TokenFilter): Promise<Page<TokenRecord>>;
  /** It lets nobody in from now on, and the logins that it opened end: here at once, in other processes within a second. */
  revoke(id: string): Promise<TokenRecord>;
};

const shown = sql`select seq as ".seq", id, name, tenant_id as tenant, role, queues as "queues json", names as "names json",
  created_at as "createdAt", expires_at as "expiresAt", last_used_at as "lastUsedAt", revoked_at as "revokedAt"
  from daybook_token token`;

const createFields: readonly (keyof TokenOptions)[] = ["role", "tenant", "name", "expires", "queues", "names"];

export function tokenVerbs(store: Store): Tokens {
  return {
    async create(options) {
      refuseUnknown(options, createFields, "tokens.create");
      const { name, tenant, role, queues, names, expires } = checkOptions(options);
      const { id, secret } = newToken();
      const hash = hashSecret(secret);
      const made = await store.write(async (tx) => {
        const expiresAt = expires === undefined ? null : tx.now + expires;
        await tx.run(sql`insert into daybook_token (id, hash, name, tenant_id, role, queues, names, created_at, expires_at)
          values (${id}, ${hash}, ${name ?? id}, ${tenant}, ${role}, ${queues}, ${names}, ${tx.now}, ${expiresAt})`);
        return tx.get<Row>(sql`${shown} where id = ${id}`);
      });
      return { ...recordOf(made, id), secret };
    },
    async list(filter = {}) {
      refuseUnknown(filter, ["limit", "after", "tenant", "all"], "tokens.list");
      const { limit, after } = checkPage(filter);
      const { tenant, all = false } = filter;
      if (typeof all !== "boolean") throw invalid(`all is ${quote(all)}: true or false`);
      const now = store.time.now();
      const only = tenant === undefined ? sql`` : sql`and tenant_id = ${checkTenant(tenant)}`;
      const open = all ? sql`` : sql`and revoked_at is null and coalesce(expires_at, ${now + 1}) > ${now}`;
      const found = await store.readPage<Row>(sql`${shown} where seq < ${after ?? Number.MAX_SAFE_INTEGER}
        ${only} ${open} order by seq desc limit ${limit + 1}`);
      return shapePage<TokenRecord>(found, limit);
    },
    revoke: (id) =>
      store.write(async (tx) => {
        checkName(id, "token");
        const row = await tx.get<{ seq: number; created_at: number; revoked_at: number | null }>(
          sql`select seq, created_at, revoked_at from daybook_token where id = ${id}`,
        );
        if (row !== undefined && row.revoked_at === null) {
          // A clock that was set back must not keep anybody from revoking.
          const at = Math.max(tx.now, row.created_at);
          await tx.run(sql`update daybook_token set revoked_at = ${at} where seq = ${row.seq}`);
          await tx.run(sql`delete from daybook_login where token_seq = ${row.seq}`);
          tx.wake(accessChannel);
        }
        return recordOf(await tx.get<Row>(sql`${shown} where id = ${id}`), id);
      }),
  };
}

function recordOf(row: Row | undefined, id: string): TokenRecord {
  const [found] = shape<TokenRecord>(row === undefined ? [] : [row]);
  if (found === undefined) throw notFound(`no token has the id ${quote(id)}: list them with "tokens list"`, { id });
  return found;
}

type Checked = {
  readonly name: string | undefined;
  readonly tenant: string | null;
  readonly role: Role;
  readonly queues: string | null;
  readonly names: string | null;
  readonly expires: number | undefined;
};

function checkOptions({ role, tenant, name, expires, queues, names }: TokenOptions): Checked {
  if (!roles.includes(role)) throw invalid(`role is ${quote(role)}: give one of ${roles.join(", ")}`);
  if (tenant === undefined) throw invalid("tenant is missing: name one, or give null for the whole book");
  if (role !== "worker" && (queues !== undefined || names !== undefined)) {
    throw invalid(`queues and names are for tokens of workers, and this one is for ${role}`);
  }
  return {
    role,
    tenant: tenant === null ? null : checkTenant(tenant),
    name: name === undefined ? undefined : checkName(name, "name"),
    expires: expires === undefined ? undefined : durationMs(expires, "expires", { min: 1 }),
    queues: checkNames(queues, "queues"),
    names: checkNames(names, "names"),
  };
}

function checkNames(given: readonly string[] | undefined, what: string): string | null {
  if (given === undefined) return null;
  if (!Array.isArray(given)) throw invalid(`${what} is ${quote(given)}: give a list of names`);
  checkCount(given.length, `the number of ${what}`, 1, limits.tokenNamesMax);
  return JSON.stringify([...new Set(given.map((each) => checkName(each as string, `one of ${what}`)))]);
}
