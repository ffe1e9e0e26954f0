// Seals everything anew with the first of the given keys: what is sealed with another of them, and what is kept in clear because there was
// no key. It goes through the notices first, because calls are made of them, and then through the calls in their order, in slices that
// are transactions of their own. It may be ended at any moment and begun again: what is done is passed over.
import { invalid, isDaybookError } from "../core/error.ts";
import type { KeyRing } from "../core/seal.ts";
import { refuseUnknownOfAll } from "../core/suggest.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { renewNotices } from "../jobs/renew-notices.ts";
import { resealAnswer, resealRequest } from "./request/kept.ts";
import { keyOfNotice, resealNotice } from "./webhook.ts";

export type Resealed = {
  readonly dryRun: boolean;
  /** The key that seals. */
  readonly keyId: string;
  readonly requests: number;
  readonly answers: number;
  /** The webhooks that definitions, templates and groups notify of their end. */
  readonly notices: number;
  /** What no given key opens, by the key that it is sealed with. It stays as it is. */
  readonly missing: readonly { readonly keyId: string; readonly count: number }[];
};

type Found = {
  readonly seq: number;
  readonly tenant_id: string;
  readonly id: string;
  /** Null for a request. */
  readonly run_id: string | null;
  readonly key_id: string | null;
};

const callsEach = 1000;
const sliceMax = 100;
const sliceBytesMax = 1_048_576;

export async function reseal(
  store: Store,
  keys: KeyRing | undefined,
  options: { readonly dryRun?: boolean } = {},
): Promise<Resealed> {
  refuseUnknownOfAll(options, { fields: [], flags: ["dryRun"] }, "reseal");
  const { dryRun = false } = options;
  if (keys === undefined)
    throw invalid("there is no key to seal with: give the new one, and after it the old ones, with DAYBOOK_KEY");
  const counts = { requests: 0, answers: 0, notices: 0 };
  const missing = new Map<string, number>();
  // Undefined where nothing is to be written: no given key opens it, and it is counted as missing.
  const anew = (what: keyof typeof counts, keyId: string | null, seal: () => string): string | undefined => {
    const sealed = keyId !== null && !keys.opens(keyId) ? undefined : unlessChanged(seal);
    if (sealed === undefined) missing.set(keyId ?? "", (missing.get(keyId ?? "") ?? 0) + 1);
    else counts[what]++;
    return dryRun ? undefined : sealed;
  };
  await store.readsLong(async (reader) => {
    await renewNotices(store, reader, (kept) => {
      const keyId = keyOfNotice(kept);
      return keyId === keys.id ? undefined : anew("notices", keyId, () => resealNotice(keys, kept));
    });
    const slice = startSlice(store);
    const [ends] = await reader.all<{ first: number | null; last: number | null }>(
      sql`select min(seq) as first, max(seq) as last from daybook_call`,
    );
    for (let from = ends?.first ?? 1; from <= (ends?.last ?? 0); from += callsEach) {
      for (const found of await reader.all<Found>(notSealedWith(keys.id, from))) {
        const text = dryRun ? null : ((await reader.all<{ text: string | null }>(textOf(found)))[0]?.text ?? null);
        const what = found.run_id === null ? "requests" : "answers";
        const sealed = anew(what, found.key_id, () => (text === null ? "" : sealedAnew(keys, found, text)));
        // Without a text it left the book meanwhile.
        if (sealed !== undefined && text !== null) await slice.add(replaced(found, sealed, keys.id), sealed.length);
      }
    }
    await slice.write();
  });
  return { dryRun, keyId: keys.id, ...counts, missing: [...missing].map(([keyId, count]) => ({ keyId, count })) };
}

/** Statements that are written together, as many as one transaction should have. */
function startSlice(store: Store) {
  let statements: Sql[] = [];
  let bytes = 0;
  async function write(): Promise<void> {
    const all = statements;
    [statements, bytes] = [[], 0];
    if (all.length === 0) return;
    await store.write(async (tx) => {
      for (const each of all) await tx.run(each);
    });
  }
  return {
    write,
    async add(statement: Sql, size: number): Promise<void> {
      statements.push(statement);
      bytes += size;
      if (statements.length >= sliceMax || bytes >= sliceBytesMax) await write();
    },
  };
}

function notSealedWith(keyId: string, from: number): Sql {
  const among = sql`call.seq >= ${from} and call.seq < ${from + callsEach}`;
  return sql`select call.seq, call.tenant_id, call.id, null as run_id, call.key_id from daybook_call call
    where ${among} and call.key_id is distinct from ${keyId} and call.content is not null
    union all select call.seq, call.tenant_id, call.id, attempt.id as run_id, attempt.key_id
    from daybook_call call cross join daybook_call_attempt attempt
    where ${among} and attempt.tenant_id = call.tenant_id and attempt.call_id = call.id
      and attempt.key_id is distinct from ${keyId} and attempt.answer is not null`;
}

function textOf({ seq, tenant_id: tenant, id, run_id: runId }: Found): Sql {
  return runId === null
    ? sql`select content as text from daybook_call where seq = ${seq}`
    : sql`select answer as text from daybook_call_attempt where tenant_id = ${tenant} and call_id = ${id} and id = ${runId}`;
}

function sealedAnew(keys: KeyRing, found: Found, text: string): string {
  return found.run_id === null ? resealRequest(keys, found, text) : resealAnswer(keys, found, found.run_id, text);
}

/** Undefined when it does not open, because it was changed. */
function unlessChanged(seal: () => string): string | undefined {
  try {
    return seal();
  } catch (error) {
    if (isDaybookError(error)) return undefined;
    throw error;
  }
}

// Only while it is as it was found: a request that waits for its end in clear may have left the book.
function replaced(
  { seq, tenant_id: tenant, id, run_id: runId, key_id: before }: Found,
  sealed: string,
  keyId: string,
): Sql {
  return runId === null
    ? sql`update daybook_call set content = ${sealed}, key_id = ${keyId}, kept = 'sealed', fingerprint = null
        where seq = ${seq} and content is not null and key_id is not distinct from ${before}`
    : sql`update daybook_call_attempt set answer = ${sealed}, key_id = ${keyId}
        where tenant_id = ${tenant} and call_id = ${id} and id = ${runId} and key_id is not distinct from ${before}`;
}
