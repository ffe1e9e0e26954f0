// Logins of browsers: a token, or a one-time link, is given for a secret that the browser keeps as a cookie.
import { checkCount } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkTenant } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { hashSecret, isSameHash, newSecret, readSecret } from "../core/secret.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";
import { accessChannel, callerOf, linkName, type Caller } from "./caller.ts";
import { roles, type Role } from "./token.ts";

export type LinkOptions = {
  /** Default: admin. */
  readonly role?: Role;
  /** Default: the whole book. */
  readonly tenant?: string | null;
  /** Default: 15 minutes. */
  readonly ttlMs?: number;
};

export type Login = {
  /** What the browser keeps. The book has its hash. */
  readonly cookie: string;
  readonly caller: Caller;
  readonly expiresAt: number;
};

export type Logins = {
  /** Makes the secret of a link that logs somebody in, once. */
  link(options?: LinkOptions): Promise<string>;
  /** Takes a token, or the secret of a link, which is then used up. Null for one that lets nobody in. */
  login(secret: string): Promise<Login | null>;
  logout(cookie: string): Promise<void>;
};

export function openLogins(store: Store): Logins {
  return {
    async link(options = {}) {
      refuseUnknown(options, ["role", "tenant", "ttlMs"], "access.link");
      const { role = "admin", tenant = null, ttlMs = limits.linkMs } = options;
      if (!roles.includes(role)) throw invalid(`role is ${quote(role)}: give one of ${roles.join(", ")}`);
      if (tenant !== null) checkTenant(tenant);
      checkCount(ttlMs, "ttlMs", 1, limits.linkLoginMs);
      const secret = newSecret("link");
      const hash = hashSecret(secret);
      await store.write((tx) =>
        insert(tx, { hash, kind: "link", token_seq: null, tenant_id: tenant, role, expires_at: tx.now + ttlMs }),
      );
      return secret;
    },
    async login(secret) {
      const read = readSecret(secret);
      if (read === undefined || read.kind === "login") return null;
      // Who tries what lets nobody in does not get a place in the line of writers for it.
      if (!(await isThere(store, read, secret))) return null;
      const cookie = newSecret("login");
      const hash = hashSecret(cookie);
      return store.write(async (tx) => {
        const opened = await (read.kind === "token" ? byToken(tx, read.id, secret) : byLink(tx, secret));
        if (opened === undefined) return null;
        const { caller, token_seq, expires_at } = opened;
        const { tenant: tenant_id, role } = caller;
        await insert(tx, { hash, kind: "login", token_seq, tenant_id, role, expires_at });
        return { cookie, caller, expiresAt: expires_at };
      });
    },
    async logout(cookie) {
      if (readSecret(cookie)?.kind !== "login") return;
      const hash = hashSecret(cookie);
      await store.write(async (tx) => {
        const ended = await tx.run(sql`delete from daybook_login where hash = ${hash} and kind = 'login'`);
        if (ended > 0) tx.wake(accessChannel);
      });
    },
  };
}

async function isThere(store: Store, { kind, id }: { kind: string; id: string }, secret: string): Promise<boolean> {
  const hash = hashSecret(secret);
  const [row] = await store.read<{ hash: string }>(
    kind === "token"
      ? sql`select hash from daybook_token where id = ${id} and revoked_at is null`
      : sql`select hash from daybook_login where hash = ${hash} and kind = 'link'`,
  );
  return isSameHash(hash, row?.hash ?? hashSecret(""));
}

type LoginRow = {
  readonly hash: string;
  readonly kind: "link" | "login";
  readonly token_seq: number | null;
  readonly tenant_id: string | null;
  readonly role: Role;
  readonly expires_at: number;
};

async function insert(tx: Tx, { hash, kind, token_seq, tenant_id, role, expires_at }: LoginRow): Promise<void> {
  await tx.run(sql`insert into daybook_login (hash, kind, token_seq, tenant_id, role, created_at, expires_at)
    values (${hash}, ${kind}, ${token_seq}, ${tenant_id}, ${role}, ${tx.now}, ${expires_at})`);
}

type Opened = { readonly caller: Caller; readonly token_seq: number | null; readonly expires_at: number };

type TokenRow = Parameters<typeof callerOf>[0] & { seq: number; hash: string; expires_at: number | null };

async function byToken(tx: Tx, id: string, secret: string): Promise<Opened | undefined> {
  const row = await tx.get<TokenRow>(sql`select seq, id as token_id, hash, name, tenant_id, role, queues, names,
    expires_at from daybook_token where id = ${id} and revoked_at is null`);
  const isKnown = isSameHash(hashSecret(secret), row?.hash ?? hashSecret(""));
  const ends = row?.expires_at ?? Number.MAX_SAFE_INTEGER;
  if (row === undefined || !isKnown || ends <= tx.now) return undefined;
  return { caller: callerOf(row), token_seq: row.seq, expires_at: Math.min(ends, tx.now + limits.loginMs) };
}

// The row that is removed is the right to log in: of two that come with one link, one finds it.
async function byLink(tx: Tx, secret: string): Promise<Opened | undefined> {
  const row = await tx.get<Pick<TokenRow, "tenant_id" | "role"> & { expires_at: number }>(sql`delete from daybook_login
    where hash = ${hashSecret(secret)} and kind = 'link' returning tenant_id, role, expires_at`);
  if (row === undefined || row.expires_at <= tx.now) return undefined;
  const caller = callerOf({ ...row, token_id: null, name: linkName, queues: null, names: null });
  return { caller, token_seq: null, expires_at: tx.now + limits.linkLoginMs };
}

/** Those that have ended, and links that nobody used. They are few. */
export async function removeLogins(tx: Tx, now: number): Promise<number> {
  return tx.run(sql`delete from daybook_login where expires_at <= ${now}`);
}
