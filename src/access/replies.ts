// Kept replies: a request with an idempotency key is done once, and whoever repeats it gets the same answer for a day.
//
//   (none) ──► under way ──► done          its answer is kept
//                   │  └───► (none)        it failed before it did anything
//                   └──────► under way     of the next one that asks, when its process has ended or an hour has passed
import { checkKey } from "../core/name.ts";
import { limits } from "../core/limits.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { hideSecrets } from "../core/secret.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store, Tx } from "../storage/store.ts";

export type ReplyKey = {
  readonly tenant: string;
  /** Whose key it is: two tokens that choose one key do not meet. */
  readonly tokenId: string;
  readonly key: string;
  readonly route: string;
  readonly bodyHash: string;
};

export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type Begun =
  /** Nobody has asked this before: do it, then call `finish` or `drop` with the id. */
  | { readonly state: "fresh"; readonly id: string }
  /** It was done: this was the answer. */
  | ({ readonly state: "done" } & Reply)
  /** The key stands for something else. */
  | { readonly state: "other" }
  /** Somebody is doing it. */
  | { readonly state: "busy" };

export type Replies = {
  /** Of several that ask at once, one is told `fresh`. */
  begin(key: ReplyKey): Promise<Begun>;
  finish(id: string, reply: Reply): Promise<void>;
  /** The request failed before it did anything, so the key is free again. */
  drop(id: string): Promise<void>;
};

type ReplyRow = {
  id: string;
  route: string;
  body_hash: string;
  begun_at: number;
  finished_at: number | null;
  status: number | null;
  headers: string | null;
  body: string | null;
  gone: number;
};

/** `session` is the number of this process's session; null for a process that has none. */
export function openReplies(store: Store, session: () => number | null): Replies {
  return {
    async begin(key) {
      checkReplyKey(key);
      // Made here, so that a unit that runs again knows its own row.
      const id = store.ids();
      return store.write((tx) => begin(tx, key, { id, session: session() }), { by: "shared" });
    },
    async finish(handle, { status, headers, body }) {
      const { which } = readHandle(handle);
      // A token is shown once; whoever repeats the request that made it sees that there was one.
      const [head, text] = [hideSecrets(JSON.stringify(headers)), hideSecrets(body)];
      await store.write(
        (tx) =>
          tx.run(sql`update daybook_reply set finished_at = ${tx.now}, status = ${status}, headers = ${head}, body = ${text}
          where ${which} and finished_at is null`),
        { by: "shared" },
      );
    },
    async drop(handle) {
      const { which } = readHandle(handle);
      await store.write((tx) => tx.run(sql`delete from daybook_reply where ${which} and finished_at is null`), {
        by: "shared",
      });
    },
  };
}

function checkReplyKey({ key, tenant, tokenId, route, bodyHash }: ReplyKey): void {
  if (!/^[\x21-\x7e]+$/.test(key) || key.length > limits.replyKeyBytesMax) {
    throw invalid(`the idempotency key ${quote(key)} is not 1 to ${limits.replyKeyBytesMax} printable characters`);
  }
  for (const [what, value] of Object.entries({ tenant, tokenId, route, bodyHash })) checkKey(value, what);
}

async function begin(
  tx: Tx,
  { tenant, tokenId, key, route, bodyHash }: ReplyKey,
  { id, session }: { readonly id: string; readonly session: number | null },
): Promise<Begun> {
  const fresh: Begun = { state: "fresh", id: JSON.stringify([tenant, tokenId, key, id]) };
  const mine = sql`tenant_id = ${tenant} and token_id = ${tokenId} and key = ${key}`;
  const inserted = await tx.run(sql`insert into daybook_reply
      (tenant_id, token_id, key, id, route, body_hash, session_seq, begun_at)
    values (${tenant}, ${tokenId}, ${key}, ${id}, ${route}, ${bodyHash}, ${session}, ${tx.now}) on conflict do nothing`);
  if (inserted > 0) return fresh;
  const row = await tx.get<ReplyRow>(sql`select id, route, body_hash, begun_at, finished_at, status, headers, body,
      case when session_seq is not null and not exists (select 1 from daybook_session session
        where session.seq = reply.session_seq and session.status = 'running') then 1 else 0 end as gone
    from daybook_reply reply where ${mine}`);
  // Whoever had the key gave it back between the two statements.
  if (row === undefined) return { state: "busy" };
  if (row.id === id) return fresh;
  const ageMs = tx.now - row.begun_at;
  const isOver = row.finished_at === null ? row.gone === 1 || ageMs >= limits.replyBegunMs : ageMs >= limits.replyMs;
  if (isOver) {
    // The condition on the id lets one of several have it.
    const taken = await tx.run(sql`update daybook_reply set id = ${id}, route = ${route}, body_hash = ${bodyHash},
        session_seq = ${session}, begun_at = ${tx.now}, finished_at = null, status = null, headers = null, body = null
      where ${mine} and id = ${row.id}`);
    return taken > 0 ? fresh : { state: "busy" };
  }
  if (row.route !== route || row.body_hash !== bodyHash) return { state: "other" };
  if (row.finished_at === null) return { state: "busy" };
  const headers = JSON.parse(row.headers ?? "{}") as Record<string, string>;
  return { state: "done", status: row.status ?? 200, headers, body: row.body ?? "" };
}

function readHandle(handle: string): { which: Sql } {
  const [tenant, tokenId, key, id] = JSON.parse(handle) as string[];
  if (tenant === undefined || tokenId === undefined || key === undefined || id === undefined) {
    throw invalid(`${quote(handle)} is not what replies.begin gave`);
  }
  return { which: sql`tenant_id = ${tenant} and token_id = ${tokenId} and key = ${key} and id = ${id}` };
}

/** The requests of a process that has ended are free again. */
export async function freeReplies(tx: Tx, sessionSeq: number): Promise<void> {
  await tx.run(sql`delete from daybook_reply where session_seq = ${sessionSeq} and finished_at is null`);
}

export async function removeReplies(tx: Tx, by: number, limit: number): Promise<number> {
  return tx.run(sql`delete from daybook_reply where (tenant_id, token_id, key) in (
    select tenant_id, token_id, key from daybook_reply where begun_at < ${by} order by begun_at limit ${limit})`);
}
