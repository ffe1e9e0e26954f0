// Who calls: the bearer of a token, or a browser that logged in. What a process last read of them it believes for a second, or until
// it hears that something was revoked.
import { limits } from "../core/limits.ts";
import { hashSecret, isSameHash, readSecret } from "../core/secret.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import type { Role } from "./token.ts";

export type Caller = {
  /** The public id of its token; null for a login by a one-time link. */
  readonly tokenId: string | null;
  readonly name: string;
  /** Null: the whole book. */
  readonly tenant: string | null;
  readonly role: Role;
  /** Of a worker: what it may take; null means all. */
  readonly queues: readonly string[] | null;
  readonly names: readonly string[] | null;
};

/** Who logged in by a link has no name. */
export const linkName = "one-time link";

/** Woken when a token was revoked or a login has ended. */
export const accessChannel = "access";

/** What lets a caller in. */
type Pass = { readonly hash: string; readonly tokenSeq: number | null; readonly ends: number; readonly caller: Caller };

type CallerRow = {
  token_id: string | null;
  name: string;
  tenant_id: string | null;
  role: Role;
  queues: string | null;
  names: string | null;
};

type PassRow = CallerRow & { hash: string; token_seq: number | null; ends: number; last_used_at: number | null };

export type Callers = {
  /** Null for a secret that is unknown, expired or revoked, or is none. */
  identify(secret: string): Promise<Caller | null>;
  identifyCookie(cookie: string): Promise<Caller | null>;
  /** Resolves once what is to be written of uses is written. */
  close(): Promise<void>;
};

const never = Number.MAX_SAFE_INTEGER;
const nobody = hashSecret("");

export function openCallers(store: Store): Callers {
  const known = new Map<string, { readonly readMs: number; readonly pass: Promise<Pass | undefined> }>();
  const used = new Map<number, number>();
  let writing: Promise<unknown> = Promise.resolve();

  // Another process may have revoked something; on SQLite null is all that is heard of another process.
  const stopListening = store.onWake((channel) => {
    if (channel === accessChannel || channel === null) known.clear();
  });

  async function passOf(key: string, which: Sql): Promise<Pass | undefined> {
    const nowMs = store.waitClock.monotonic();
    const found = known.get(key);
    if (found !== undefined && nowMs - found.readMs < limits.tokenMs) return found.pass;
    const pass = readPass(which);
    // Forgotten in the order of their coming: a flood of unknown ones costs the others a reading.
    if (known.size >= limits.tokensCachedMax) for (const first of known.keys()) if (known.delete(first)) break;
    known.set(key, { readMs: nowMs, pass });
    const forget = (): void => void (known.get(key)?.pass === pass && known.delete(key));
    pass.then((made) => made === undefined && forget(), forget);
    return pass;
  }

  async function readPass(which: Sql): Promise<Pass | undefined> {
    const [row] = await store.read<PassRow>(which);
    if (row === undefined) return undefined;
    if (row.token_seq !== null) used.set(row.token_seq, Math.max(row.last_used_at ?? 0, used.get(row.token_seq) ?? 0));
    const { hash, token_seq: tokenSeq, ends } = row;
    return { hash, tokenSeq, ends, caller: callerOf(row) };
  }

  /** The answer takes as long for a token that is not there as for one that is. */
  function admit(pass: Pass | undefined, hash: string): Caller | null {
    const isKnown = isSameHash(hash, pass?.hash ?? nobody);
    const nowMs = store.time.now();
    if (!isKnown || pass === undefined || pass.ends <= nowMs) return null;
    if (pass.tokenSeq !== null) noteUse(pass.tokenSeq, nowMs);
    return pass.caller;
  }

  // Nobody waits for it, and a use that is not written is made up for by the next one.
  function noteUse(seq: number, nowMs: number): void {
    if (nowMs - (used.get(seq) ?? 0) < limits.tokenUsedMs) return;
    used.set(seq, nowMs);
    const write = store.write(
      (tx) =>
        tx.run(sql`update daybook_token set last_used_at = ${nowMs}
        where seq = ${seq} and coalesce(last_used_at, 0) < ${nowMs}`),
      { by: "shared" },
    );
    writing = Promise.allSettled([writing, write]);
  }

  return {
    async identify(secret) {
      const read = readSecret(secret);
      const hash = hashSecret(typeof secret === "string" && secret.length <= secretLengthMax ? secret : "none");
      if (read?.kind !== "token") return admit(undefined, hash);
      return admit(
        await passOf(read.id, sql`${ofToken} where token.id = ${read.id} and token.revoked_at is null`),
        hash,
      );
    },
    async identifyCookie(cookie) {
      if (readSecret(cookie)?.kind !== "login") return null;
      // A hash is no secret to whoever could time the index that finds it.
      const hash = hashSecret(cookie);
      return admit(await passOf(hash, sql`${ofLogin} where login.hash = ${hash} and login.kind = 'login'`), hash);
    },
    async close() {
      stopListening();
      await writing;
    },
  };
}

const secretLengthMax = 200;

const columns = sql`token.seq as token_seq, token.id as token_id, token.queues, token.names, token.last_used_at`;

const ofToken = sql`select token.hash, token.name, token.tenant_id, token.role, coalesce(token.expires_at, ${never}) as ends,
  ${columns} from daybook_token token`;

const ofLogin = sql`select login.hash, coalesce(token.name, ${linkName}) as name, login.tenant_id, login.role,
  case when token.revoked_at is not null then 0 when token.expires_at < login.expires_at then token.expires_at else login.expires_at end as ends,
  ${columns} from daybook_login login left join daybook_token token on token.seq = login.token_seq`;

export function callerOf(row: CallerRow): Caller {
  const { token_id: tokenId, name, tenant_id: tenant, role } = row;
  const list = (text: string | null): string[] | null => (text === null ? null : (JSON.parse(text) as string[]));
  return Object.freeze({ tokenId, name, tenant, role, queues: list(row.queues), names: list(row.names) });
}
