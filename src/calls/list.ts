// Reading calls: one with its attempts, or pages of them by what people look for.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown, refuseUnknownFilter } from "../core/suggest.ts";
import { notACursor } from "../core/page.ts";
import { timeMs, type TimeInput } from "../core/time.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { anyOf } from "../storage/word.ts";
import { callStatuses, type CallStatus } from "./call.ts";
import { selectAttempts, selectCalls, toAttempt, toCall } from "./call-record.ts";
import type { AttemptRow, CallDetails, CallRecord, ListedRow } from "./call-record.ts";
import { notFound } from "./steer.ts";

export type CallFilter = {
  readonly status?: CallStatus | readonly CallStatus[];
  readonly tag?: string;
  /** Those with at least one of `any`, and with all of `all`. */
  readonly tags?: { readonly any?: readonly string[]; readonly all?: readonly string[] };
  /** As in the URL, with its port if that is not the usual one: `api.example.com`, `localhost:8080`. */
  readonly host?: string;
  readonly name?: string;
  readonly correlationId?: string;
  /** Due at or after this time. */
  readonly from?: TimeInput;
  /** Due before this time. */
  readonly to?: TimeInput;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string;
};

export type CallPage = { readonly items: readonly CallRecord[]; readonly next: string | null };

const filters: readonly (keyof CallFilter)[] = [
  ...(["status", "tag", "tags", "host", "name", "correlationId", "from", "to", "limit", "after"] as const),
];

/** The newest first. */
export async function listCalls(store: Store, tenant: string, filter: CallFilter): Promise<CallPage> {
  refuseUnknownFilter(filter, filters, "the list of calls");
  const limit = filter.limit ?? limits.pageDefault;
  if (!Number.isInteger(limit) || limit < 1 || limit > limits.pageMax) {
    throw invalid(`limit ${limit} is not a whole number from 1 to ${limits.pageMax}`);
  }
  const before = filter.after === undefined ? Number.MAX_SAFE_INTEGER : Number(filter.after);
  if (!Number.isSafeInteger(before) || before < 1) throw notACursor(filter.after);
  const rows = await store.readHeavy<ListedRow>(sql`${selectCalls}
    where call.tenant_id = ${tenant} and call.seq < ${before} ${conditions(tenant, filter)}
    order by call.seq desc limit ${limit + 1}`);
  const items = rows.slice(0, limit);
  return { items: items.map(toCall), next: rows.length > limit ? String(items.at(-1)?.seq) : null };
}

function conditions(tenant: string, filter: CallFilter): Sql {
  const { status, tag, tags, host, name, correlationId, from, to } = filter;
  const wanted = status === undefined ? [] : [status].flat();
  for (const each of wanted) {
    if (!callStatuses.includes(each)) throw invalid(`status ${quote(each)} is not known: ${callStatuses.join(", ")}`);
  }
  const parts: Sql[] = [];
  if (wanted.length > 0) parts.push(rawSql(`and call.status in (${wanted.map((each) => `'${each}'`).join(", ")})`));
  if (tag !== undefined) parts.push(hasAny(tenant, [tag]));
  if (tags !== undefined) parts.push(...byTags(tenant, tags));
  if (host !== undefined) parts.push(sql`and call.host = ${host}`);
  if (name !== undefined) parts.push(sql`and call.name = ${name}`);
  if (correlationId !== undefined) parts.push(sql`and call.correlation_id = ${correlationId}`);
  if (from !== undefined) parts.push(sql`and call.due_at >= ${timeMs(from, "from")}`);
  if (to !== undefined) parts.push(sql`and call.due_at < ${timeMs(to, "to")}`);
  return joinSql(parts);
}

function byTags(tenant: string, tags: NonNullable<CallFilter["tags"]>): Sql[] {
  const wrong = invalid(`tags is { any: [...] } or { all: [...] } with 1 to ${limits.tagsMax} texts each`);
  if (typeof tags !== "object" || tags === null) throw wrong;
  refuseUnknown(tags, ["any", "all"], "tags");
  const { any, all } = tags;
  for (const list of [any ?? all, all ?? any]) {
    if (!Array.isArray(list) || list.length === 0 || list.length > limits.tagsMax) throw wrong;
    if (!list.every((tag) => typeof tag === "string")) throw wrong;
  }
  return [...(any === undefined ? [] : [hasAny(tenant, any)]), ...(all ?? []).map((tag) => hasAny(tenant, [tag]))];
}

function hasAny(tenant: string, tags: readonly string[]): Sql {
  return sql`and call.id in (select call_id from daybook_call_tag call_tag
    where call_tag.tenant_id = ${tenant} and call_tag.tag ${anyOf("text", tags)})`;
}

export async function findCall(store: Store, tenant: string, id: string): Promise<CallDetails> {
  const [[row], attempts] = await Promise.all([
    store.read<ListedRow>(sql`${selectCalls} where call.tenant_id = ${tenant} and call.id = ${id}`),
    store.read<AttemptRow>(sql`${selectAttempts} where tenant_id = ${tenant} and call_id = ${id}
      order by number limit ${limits.pageMax}`),
  ]);
  if (row === undefined) throw notFound(id);
  return { ...toCall(row), attempts: attempts.map(toAttempt) };
}
