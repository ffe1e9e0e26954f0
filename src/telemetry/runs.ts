// What a user asks about runs.
import type { Duration } from "../core/duration.ts";
import { checkPage, type Page, type PageOptions } from "../core/page.ts";
import { checkWord, refuseUnknown, refuseUnknownFilter } from "../core/suggest.ts";
import type { TimeInput } from "../core/time.ts";
import { shape, shapePage } from "../storage/shape.ts";
import { sql, type Sql } from "../storage/sql.ts";
import type { Row, Store } from "../storage/store.ts";
import { andEqual } from "../storage/word.ts";
import { readLogsOfRun, type RunLog } from "./log.ts";
import { findSession, momentMs, piecesOf, rollupsOf, scopeOptions, together, wholeMinutes } from "./report/scope.ts";
import type { Scope } from "./report/scope.ts";
import { readMark } from "./rollup/roll-up.ts";
import { noEndedRun, pinRun, runStatuses, selectByNumber, selectRuns, unpinRun } from "./run.ts";
import type { RunRecord, RunStatus } from "./run.ts";

export type Runs = {
  get(id: string): Promise<RunRecord>;
  /** Ended runs, the latest first.
   *
   *  ```ts
   *  const { items } = await book.runs.list({ status: "error", since: "1h" });
   *  ``` */
  list(filter?: RunFilter): Promise<RunPage>;
  logs(id: string): Promise<RunLog[]>;
  /** Keeps the run, and its job if it has one, from retention and prune until it is unpinned.
   *
   *  ```ts
   *  const { items } = await book.runs.list({ status: "error", limit: 1 });
   *  for (const { id } of items) await book.runs.pin(id, { note: "the night the lights stayed on" });
   *  ``` */
  pin(id: string, options?: { readonly note?: string }): Promise<void>;
  /** False when it was not pinned. */
  unpin(id: string): Promise<boolean>;
};

/** `seenBy` is the tenant that asks, or null for the owner of the whole book. */
export function openRuns(store: Store, tenant: string, seenBy: string | null = null): Runs {
  return {
    async get(id) {
      const rows = await store.read<Row>(sql`${selectRuns} where run.tenant_id = ${tenant} and run.id = ${id}`);
      const [run] = shape<RunRecord>(rows);
      if (run === undefined) throw noEndedRun(id);
      return run;
    },
    list: (filter = {}) => listRuns(store, tenant, filter, seenBy),
    logs: (id) => readLogsOfRun(store, tenant, id),
    async pin(id, options = {}) {
      refuseUnknown(options, ["note"], "pin");
      await store.write((tx) => pinRun(tx, id, options.note ?? null), { tenant });
    },
    unpin: (id) => store.write((tx) => unpinRun(tx, id), { tenant }),
  };
}

export type RunFilter = PageOptions & {
  readonly status?: RunStatus;
  /** `job`, `listener` (live), `delivery`, `schedule`, `direct`, `call`. */
  readonly kind?: string;
  /** The `name` of a summary: the schedule that fired it, or the name under which an app registered it, or else its own name. */
  readonly name?: string;
  /** Only runs of the job of this name, whatever fired it. */
  readonly job?: string;
  readonly app?: string;
  readonly instance?: number;
  /** The id of the session that ran it. */
  readonly session?: string;
  /** Only runs that started then or later: a time, or how long ago (`"24h"`). */
  readonly since?: TimeInput | Duration;
  /** Only runs that started before then. */
  readonly until?: TimeInput | Duration;
};

export type RunPage = Page<RunRecord>;

const known = [...scopeOptions, "status", "job", "limit", "after"] satisfies readonly (keyof RunFilter)[];

/** Runs by their number, both ends included. */
type Range = { readonly from: number; readonly to: number };

/** Runs in the order in which they ended. Only runs that an app or a schedule registered, and those that did not succeed, have an
 *  index beside the number; other lists walk over numbers, and rollups tell between which ones. */
export async function listRuns(
  store: Store,
  tenant: string,
  filter: RunFilter,
  seenBy: string | null = null,
): Promise<RunPage> {
  refuseUnknownFilter(filter, known, "runs.list");
  const { limit, after } = checkPage(filter);
  const { status } = filter;
  if (status !== undefined) checkWord(status, runStatuses, "status");
  const now = store.clock.now();
  const when: When = {
    since: filter.since === undefined ? 0 : momentMs(now, filter.since, "since"),
    until: filter.until === undefined ? null : momentMs(now, filter.until, "until"),
    session: filter.session === undefined ? undefined : (await findSession(store, seenBy, filter.session)).seq,
  };
  const which = conditions(tenant, filter, when);
  const select = hasIndex(filter) ? selectRuns : selectByNumber;
  const rows: Row[] = [];
  let more = false;
  for (const { from, to } of await rangesOf(store, tenant, filter, when)) {
    const below = Math.min(to, after === null ? to : after - 1);
    if (from > below || more || rows.length > limit) continue;
    const found = await store.readPage<Row>(sql`${select} where ${which} and run.seq >= ${from} and run.seq <= ${below}
      order by run.seq desc limit ${limit + 1 - rows.length}`);
    rows.push(...found.rows);
    more = found.more;
  }
  return shapePage({ rows, more }, limit);
}

type When = { readonly since: number; readonly until: number | null; readonly session: number | undefined };

/** Where matching runs can be, the highest numbers first: above the mark, and where rollups know of some. */
async function rangesOf(store: Store, tenant: string, filter: RunFilter, when: When): Promise<Range[]> {
  const { kind, app, instance, name, status } = filter;
  const asked = [kind, app, instance, name, when.session, when.until, filter.since];
  const everywhere = [{ from: 0, to: Number.MAX_SAFE_INTEGER }];
  // The index finds the few runs that did not succeed. Without a filter, the first runs are the page.
  if (asked.every((each) => each === undefined || each === null) || isUnlike(status)) return everywhere;
  const mark = await readMark(store);
  const known = await store.readHeavy<{ first: number | null; last: number | null }>(sql`select
    min(run_rollup.first_seq) as first, max(run_rollup.last_seq) as last from ${rollupsOf(together(scopeOf(tenant, filter, when)))}`);
  const { first, last } = known[0] ?? {};
  // A job may be kept longer than the rollups of its time. Runs that rollups no longer know have lower numbers than all others.
  const older = when.session === undefined && when.since < (await countsGoneUntil(store, tenant));
  const to = last == null ? (older ? mark : null) : Math.min(last, mark);
  const folded = to === null ? [] : [{ from: older ? 0 : (first ?? 0), to }];
  return [{ from: mark + 1, to: Number.MAX_SAFE_INTEGER }, ...folded];
}

/** Rollups of the time before this have left. */
async function countsGoneUntil(store: Store, tenant: string): Promise<number> {
  const [row] = await store.read<{ until: number | null }>(
    sql`select max(until_at) as until from daybook_eviction where tenant_id = ${tenant} and what = 'rollup'`,
  );
  return row?.until ?? 0;
}

function scopeOf(tenant: string, filter: RunFilter, { since, until, session }: When): Scope {
  const { kind, app, instance, name } = filter;
  const window = wholeMinutes(since, until ?? 8.64e15);
  return { tenant, seenBy: null, window, filter: { kind, name, app, instance }, pieces: piecesOf(window, session) };
}

/** Whether one of the two other indexes fits. */
function hasIndex(filter: RunFilter): boolean {
  return isUnlike(filter.status) || isRegistered(filter);
}

function isUnlike(status: RunStatus | undefined): boolean {
  return status !== undefined && status !== "success";
}

function conditions(tenant: string, filter: RunFilter, { since, until, session }: When): Sql {
  const { status, kind, name, job, app, instance } = filter;
  const given = {
    "run.status": status,
    "run.kind": kind,
    "run.name": job,
    "coalesce(run.registration, run.name)": name,
    "run.app": app,
    "run.instance": instance,
    "run.session_seq": session,
  };
  // The planner takes one of the two other indexes only when the statement repeats its condition.
  const unlike = isUnlike(status) ? sql`and run.status <> 'success'` : sql``;
  const registered = isRegistered(filter) ? sql`and (run.job_seq is null or run.registration is not null)` : sql``;
  const before = until === null ? sql`` : sql`and run.started_at < ${until}`;
  return sql`run.tenant_id = ${tenant} ${andEqual(given)} ${unlike} ${registered}
    ${since > 0 ? sql`and run.started_at >= ${since}` : sql``} ${before}`;
}

/** Whether only runs are asked for that an app or a schedule registered. */
function isRegistered({ name, kind }: RunFilter): boolean {
  return name !== undefined && (kind === "listener" || kind === "schedule");
}
