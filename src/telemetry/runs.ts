// What a user asks about runs.
import type { Duration } from "../core/duration.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { checkPage, cutPage, type Page, type PageOptions } from "../core/page.ts";
import { refuseUnknown, refuseUnknownFilter } from "../core/suggest.ts";
import type { TimeInput } from "../core/time.ts";
import { joinSql, sql, type Sql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { findSession, momentMs, piecesOf, rollupsOf, together, type Piece, type Scope } from "./report/scope.ts";
import { readMark } from "./rollup/roll-up.ts";
import { minuteMs } from "./rollup/series.ts";
import { pinRun, runStatuses, selectByNumber, selectRuns, toRecord, unpinRun } from "./run.ts";
import type { RunLog, RunRecord, RunRow, RunStatus } from "./run.ts";

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
      const [row] = await store.read<RunRow>(sql`${selectRuns} where run.tenant_id = ${tenant} and run.id = ${id}`);
      if (row === undefined) throw new DaybookError("not_found", `there is no ended run ${id}`, { details: { id } });
      return toRecord(row);
    },
    list: (filter = {}) => listRuns(store, tenant, filter, seenBy),
    async logs(id) {
      const rows = await store.readHeavy<
        Omit<RunLog, "fields"> & { fields: string | null }
      >(sql`select logged_at as at, level,
          message, fields from daybook_run_log where tenant_id = ${tenant} and run_id = ${id} order by seq`);
      return rows.map((row) => ({ ...row, fields: row.fields === null ? null : (JSON.parse(row.fields) as unknown) }));
    },
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
  /** The name of the job or listener. */
  readonly name?: string;
  /** The schedule that fired it, or the name under which an app registered it, or else its name: the `name` of a summary. */
  readonly registration?: string;
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

const known: readonly (keyof RunFilter)[] = [
  "status",
  "kind",
  "name",
  "registration",
  "app",
  "instance",
  "session",
  "since",
  "until",
  "limit",
  "after",
];

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
  if (status !== undefined && !runStatuses.includes(status)) {
    throw invalid(`status "${String(status)}" is not known: ${runStatuses.join(", ")}`);
  }
  const now = store.clock.now();
  const since = filter.since === undefined ? 0 : momentMs(now, filter.since, "since");
  const until = filter.until === undefined ? null : momentMs(now, filter.until, "until");
  const session = filter.session === undefined ? undefined : await findSession(store, seenBy, filter.session);
  const which = conditions(tenant, filter, { since, until, session: session?.seq });
  const select = hasIndex(filter) ? selectRuns : selectByNumber;
  const rows: RunRow[] = [];
  for (const { from, to } of await rangesOf(store, tenant, filter, { since, until, session: session?.seq })) {
    const below = Math.min(to, after === null ? to : after - 1);
    if (from > below || rows.length > limit) continue;
    rows.push(
      ...(await store.readHeavy<RunRow>(sql`${select} where ${which} and run.seq >= ${from} and run.seq <= ${below}
        order by run.seq desc limit ${limit + 1 - rows.length}`)),
    );
  }
  return cutPage(rows, limit, (row) => row.seq, toRecord);
}

type When = { readonly since: number; readonly until: number | null; readonly session: number | undefined };

/** Where matching runs can be, the highest numbers first: above the mark, and where rollups know of some. */
async function rangesOf(store: Store, tenant: string, filter: RunFilter, when: When): Promise<Range[]> {
  const { kind, app, instance, registration, status } = filter;
  const asked = [kind, app, instance, registration, when.session, when.until, filter.since];
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
    sql`select max(until_at) as until from daybook_run_eviction where tenant_id = ${tenant} and what = 'rollup'`,
  );
  return row?.until ?? 0;
}

function scopeOf(tenant: string, filter: RunFilter, { since, until, session }: When): Scope {
  const { kind, app, instance, registration: name } = filter;
  const to = until ?? 8.64e15;
  const window = { since: since - (since % minuteMs), until: Math.ceil(to / minuteMs) * minuteMs };
  const pieces: Scope["pieces"] =
    session === undefined ? bounded(window) : [{ span: "session", from_at: session, to_at: session + 1 }];
  return { tenant, seenBy: null, window, filter: { kind, name, app, instance }, pieces };
}

function bounded(window: { since: number; until: number }): Piece[] {
  return window.since >= window.until ? [] : piecesOf(window);
}

/** Whether one of the two other indexes fits. */
function hasIndex({ status, registration, kind }: RunFilter): boolean {
  return isUnlike(status) || (registration !== undefined && isRegistered(kind));
}

function isUnlike(status: RunStatus | undefined): boolean {
  return status !== undefined && status !== "success";
}

function conditions(tenant: string, filter: RunFilter, { since, until, session }: When): Sql {
  const { status, kind, name, registration, app, instance } = filter;
  return joinSql([
    sql`run.tenant_id = ${tenant}`,
    ...when(status, (value) => sql`and run.status = ${value}`),
    // The planner takes the index of runs that did not succeed only when the statement repeats its condition.
    ...(isUnlike(status) ? [sql`and run.status <> 'success'`] : []),
    ...when(kind, (value) => sql`and run.kind = ${value}`),
    ...when(name, (value) => sql`and run.name = ${value}`),
    ...when(registration, (value) => sql`and coalesce(run.registration, run.name) = ${value}`),
    ...(registration !== undefined && isRegistered(kind)
      ? [sql`and (run.job_seq is null or run.registration is not null)`]
      : []),
    ...when(app, (value) => sql`and run.app = ${value}`),
    ...when(instance, (value) => sql`and run.instance = ${value}`),
    ...when(session, (value) => sql`and run.session_seq = ${value}`),
    ...(since > 0 ? [sql`and run.started_at >= ${since}`] : []),
    ...(until === null ? [] : [sql`and run.started_at < ${until}`]),
  ]);
}

function isRegistered(kind: string | undefined): boolean {
  return kind === "listener" || kind === "schedule";
}

function when<T>(value: T | undefined, condition: (value: T) => Sql): Sql[] {
  return value === undefined ? [] : [condition(value)];
}
