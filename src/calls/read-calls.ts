// Reads calls: one with its attempts, a page of them, or why one has not been sent. What was said is read only where it is revealed.
import { toCounted, type Counted } from "../core/count.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { checkPage, notACursor, type Page, type PageOptions } from "../core/page.ts";
import type { KeyRing } from "../core/seal.ts";
import { checkWord, refuseUnknown, refuseUnknownFilter } from "../core/suggest.ts";
import { timeMs, type TimeInput, isoTime } from "../core/time.ts";
import { shape, shapePage } from "../storage/shape.ts";
import { joinSql, rawSql, sql, type Sql } from "../storage/sql.ts";
import type { Row, Store } from "../storage/store.ts";
import { andEqual, anyOf } from "../storage/word.ts";
import { explainJob, type Explanation } from "../jobs/explain/explain.ts";
import { callKind, callStatuses, noSuchCall } from "./call.ts";
import type { CallOutcome, CallPolicy, CallStatus, ErrorKind } from "./call.ts";
import { openAnswer, openRequest, revealedRequest } from "./request/kept.ts";
import type { Kept, KeptAnswer, KeptAnswerRow, KeptRequest, ShownRequest } from "./request/kept.ts";

export type CallRecord = {
  readonly id: string;
  readonly name: string;
  readonly status: CallStatus;
  readonly submittedAt: number;
  readonly dueAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly host: string;
  /** Where it goes, and the shape of what is said: the path, the body and most headers are hidden unless they are revealed. */
  readonly request: ShownRequest;
  /** How the request is kept. */
  readonly kept: Kept;
  readonly policy: CallPolicy;
  readonly outcome: CallOutcome | null;
  readonly tags: readonly string[];
  readonly correlationId: string;
  readonly idempotencyKey: string | null;
  /** The Idempotency-Key that every attempt sends. */
  readonly sendKey: string;
  readonly resendOf: string | null;
  /** The job that sends it; null when the call has ended. `jobs.explain` says what the job waits for. */
  readonly jobId: string | null;
};

export type CallDetails = CallRecord & { readonly attempts: readonly CallAttempt[] };

export type CallAttempt = {
  /** The id of its run. */
  readonly id: string;
  readonly number: number;
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly response: {
    readonly status: number;
    readonly bytes: number;
    readonly truncated: boolean;
    /** Null unless it is revealed, and when it was not kept. */
    readonly said: KeptAnswer | null;
  } | null;
  readonly error: { readonly kind: ErrorKind; readonly message: string } | null;
  readonly phases: {
    readonly dnsMs: number | null;
    readonly connectMs: number | null;
    readonly tlsMs: number | null;
    readonly firstByteMs: number | null;
    readonly totalMs: number | null;
  };
};

const selectCalls = sql`select call.id, call.name, call.status, call.submitted_at as "submittedAt", call.due_at as "dueAt",
    call.started_at as "startedAt", call.finished_at as "finishedAt", call.host,
    call.request as "request json", call.kept,
    call.policy as "policy json", call.outcome as "outcome json",
    (select string_agg(tag, '\n' order by tag) from daybook_call_tag call_tag
      where call_tag.tenant_id = call.tenant_id and call_tag.call_id = call.id) as "tags lines",
    call.correlation_id as "correlationId", call.idempotency_key as "idempotencyKey", call.send_key as "sendKey",
    call.resend_of as "resendOf", job.id as "jobId", call.seq as ".seq"
  from daybook_call call left join daybook_line line on call.finished_at is null
    and line.kind = ${callKind} and line.kind_seq = call.seq and line.kind is not null
  left join daybook_job job on job.seq = line.seq`;

// The phases are there, each null or not, also before the first is known.
const selectAttempts = sql`select id, number, started_at as "startedAt", finished_at as "finishedAt",
    response_status as "response.status", response_bytes as "response.bytes",
    response_truncated as "response.truncated flag", null as "response.said", error_kind as "error.kind",
    coalesce(error_message, '') as "error.message", 0 as "phases object", dns_ms as "phases.dnsMs",
    connect_ms as "phases.connectMs", tls_ms as "phases.tlsMs", first_byte_ms as "phases.firstByteMs",
    total_ms as "phases.totalMs"
  from daybook_call_attempt`;

export type CallFilter = PageOptions & {
  readonly status?: CallStatus | readonly CallStatus[];
  readonly tag?: string;
  /** Calls with at least one tag of `any`, and with every tag of `all`. */
  readonly tags?: { readonly any?: readonly string[]; readonly all?: readonly string[] };
  /** As in the URL, with the port unless it is the scheme's own: `api.example.com`, `localhost:8080`. */
  readonly host?: string;
  readonly name?: string;
  readonly correlationId?: string;
  /** Due at or after this time. */
  readonly from?: TimeInput;
  /** Due before this time. */
  readonly to?: TimeInput;
};

export type CallPage = Page<CallRecord>;

const filters = ["status", "tag", "tags", "host", "name", "correlationId", "from", "to", "limit", "after"] as const;

/** The newest first. */
export async function listCalls(store: Store, tenant: string, filter: CallFilter): Promise<CallPage> {
  refuseUnknownFilter(filter, filters, "the list of calls");
  const { limit, after } = checkPage(filter);
  if (after !== null && after < 1) throw notACursor(filter.after);
  const found = await store.readPage<Row>(sql`${selectCalls}
    where call.tenant_id = ${tenant} and call.seq < ${after ?? Number.MAX_SAFE_INTEGER} ${conditions(tenant, filter)}
    order by call.seq desc limit ${limit + 1}`);
  return shapePage(found, limit);
}

function conditions(tenant: string, filter: CallFilter): Sql {
  const { status, tag, tags, host, name, correlationId, from, to } = filter;
  const wanted = status === undefined ? [] : [status].flat().map((each) => checkWord(each, callStatuses, "status"));
  const parts = [andEqual({ "call.host": host, "call.name": name, "call.correlation_id": correlationId })];
  if (wanted.length > 0) parts.push(rawSql(`and call.status in (${wanted.map((each) => `'${each}'`).join(", ")})`));
  if (tag !== undefined) parts.push(hasAny(tenant, [tag]));
  if (tags !== undefined) parts.push(...byTags(tenant, tags));
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

export type CallCounts = {
  readonly scheduled: Counted;
  readonly running: Counted;
  /** Those of the last that failed which did so from `failedSince` on. */
  readonly failed: Counted;
};

export async function countCalls(store: Store, tenant: string, failedSince: number): Promise<CallCounts> {
  const newest = (status: string, what = "seq"): Sql => sql`select ${rawSql(what)} from daybook_call
    where tenant_id = ${tenant} and status = '${rawSql(status)}' order by seq desc limit ${limits.countedMax + 1}`;
  const [found] = await store.readHeavy<{ scheduled: number; running: number; failed: number }>(sql`select
    (select count(*) from (${newest("scheduled")}) as calls) as scheduled,
    (select count(*) from (${newest("running")}) as calls) as running,
    (select count(*) from (${newest("failed", "finished_at")}) as calls where finished_at >= ${failedSince}) as failed`);
  const { scheduled = 0, running = 0, failed = 0 } = found ?? {};
  return { scheduled: toCounted(scheduled), running: toCounted(running), failed: toCounted(failed) };
}

async function findCall(store: Store, tenant: string, id: string): Promise<CallDetails> {
  const [calls, attempts] = await Promise.all([
    store.read<Row>(sql`${selectCalls} where call.tenant_id = ${tenant} and call.id = ${id}`),
    store.read<Row>(sql`${selectAttempts} where tenant_id = ${tenant} and call_id = ${id}
      order by number limit ${limits.pageMax}`),
  ]);
  const [call] = shape<CallRecord>(calls);
  if (call === undefined) throw noSuchCall(id);
  return { ...call, attempts: shape(attempts) };
}

export type GetCallOptions = {
  /** With what was sent and what came back, as far as it is kept: for who may see secrets. It needs the key. */
  readonly reveal?: boolean;
};

export async function getCall(
  store: Store,
  keys: KeyRing | undefined,
  { tenant, id }: { readonly tenant: string; readonly id: string },
  options: GetCallOptions,
): Promise<CallDetails> {
  refuseUnknown(options, ["reveal"], "get");
  const call = await findCall(store, tenant, id);
  if (options.reveal !== true) return call;
  const [kept] = await store.read<KeptRequest>(sql`select id, tenant_id, content, key_id from daybook_call
    where tenant_id = ${tenant} and id = ${id}`);
  const content = kept === undefined ? undefined : openRequest(keys, kept);
  const attempts: CallAttempt[] = [];
  let bytes = 0;
  // One by one, so that opening large answers does not hold the loop; of too many the newest.
  for (const { response, ...attempt } of call.attempts.toReversed()) {
    bytes += response?.bytes ?? 0;
    const said = response === null || bytes > limits.callRevealedBytesMax ? null : await findSaid(attempt.id);
    attempts.unshift({ ...attempt, response: response === null ? null : { ...response, said } });
  }
  return { ...call, attempts, request: content === undefined ? call.request : revealedRequest(content) };

  async function findSaid(runId: string): Promise<KeptAnswer | null> {
    const [row] = await store.readHeavy<KeptAnswerRow>(sql`select call_id as id, tenant_id, id as run_id, answer, key_id
      from daybook_call_attempt where tenant_id = ${tenant} and call_id = ${id} and id = ${runId}`);
    return row === undefined ? null : (openAnswer(keys, row) ?? null);
  }
}

export type CallExplanation = Omit<Explanation, "status"> & { readonly status: CallStatus };

export async function explainCall(store: Store, tenant: string, id: string): Promise<CallExplanation> {
  const { status, jobId, host, outcome } = await findCall(store, tenant, id);
  if (jobId === null) {
    const how = outcome?.error ?? `it was answered with status ${outcome?.responseStatus ?? "?"}`;
    return { id, status, reason: status, because: [`It is ${status}: ${how}.`] };
  }
  const job = await explainJob({ store, kinds: {} }, { tenant, id: jobId });
  const [known] = await store.read<{ failures: number; probe_at: number | null; probes: number }>(
    sql`select call_host.failures, call_host.probe_at, case when call_host.probe_call_seq = call.seq then 1 else 0 end
        as probes
      from daybook_call call cross join daybook_call_host call_host where call.tenant_id = ${tenant} and call.id = ${id}
        and call_host.tenant_id = ${tenant} and call_host.host = ${host}`,
  );
  const probes = known?.probes === 1 && job.reason === "time";
  if (job.reason !== "order" && !probes) return { id, status, reason: job.reason, because: job.because };
  const who = probes ? "This one" : "One of them";
  const when = known?.probe_at == null ? "" : ` ${who} tries it from ${isoTime(known.probe_at)} on.`;
  const because =
    known === undefined || known.failures === 0
      ? `The host ${host} answers again, and its calls follow a few at a time.`
      : `The host ${host} does not answer, ${known.failures} times in a row, so its calls wait.${when}`;
  return { id, status, reason: "host", because: [because] };
}
