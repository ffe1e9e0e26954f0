// What a user asks about runs.
import { DaybookError, invalid } from "../core/error.ts";
import { type Sql, sql, joinSql } from "../storage/sql.ts";
import type { Store } from "../storage/store.ts";
import { pinRun, unpinRun, selectRuns, toRecord, runStatuses, selectByNumber } from "./run.ts";
import type { RunLog, RunRecord, RunRow, RunStatus } from "./run.ts";
import { type LogLevel, logsOfRun } from "./log.ts";
import type { Duration } from "../core/duration.ts";
import { refuseUnknownFilter } from "../core/suggest.ts";
import type { TimeInput } from "../core/time.ts";
import { readMark } from "./rollup/fold.ts";
import { type Page, type PageOptions, checkPage, cutPage } from "../core/page.ts";
import { type Scope, type Piece, findSession, rollupsOf, together, momentMs, piecesOf } from "./report/scope.ts";
import { minuteMs } from "./rollup/slice.ts";

export type Runs = {
  get(id: string): Promise<RunRecord>;
  /** What ended, the latest first.
   *
   *  ```ts
   *  const { items } = await book.runs.list({ status: "error", since: "1h" });
   *  ``` */
  list(filter?: RunFilter): Promise<RunPage>;
  logs(id: string): Promise<RunLog[]>;
  /** Retention and prune leave it, and its job if it has one, until it is unpinned.
   *
   *  ```ts
   *  const { items } = await book.runs.list({ status: "error", limit: 1 });
   *  for (const { id } of items) await book.runs.pin(id, { note: "the night the lights stayed on" });
   *  ``` */
  pin(id: string, options?: { readonly note?: string }): Promise<void>;
  /** False when it was not pinned. */
  unpin(id: string): Promise<boolean>;
};

type LogRow = { logged_at: number; level: LogLevel; message: string; fields: string | null };

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
      const rows = await store.readHeavy<LogRow>(logsOfRun(tenant, id));
      return rows.map(({ logged_at: at, level, message, fields }) => ({
        ...{ at, level, message },
        fields: fields === null ? null : (JSON.parse(fields) as unknown),
      }));
    },
    pin: (id, { note } = {}) => store.write((tx) => pinRun(tx, id, note ?? null), { tenant }),
    unpin: (id) => store.write((tx) => unpinRun(tx, id), { tenant }),
  };
}

// The list of runs, by the order in which they ended. Only what an app or a schedule registered and what did not succeed has an
// index beside the number; other lists walk over numbers, and rollups say between which ones to look.

export type RunFilter = PageOptions & {
  readonly status?: RunStatus;
  /** `job`, `listener` (live), `delivery`, `schedule`, `direct`, `call`. */
  readonly kind?: string;
  /** The name of the job or listener. */
  readonly name?: string;
  /** The schedule that fired it, or the name under which it was registered, or else its name: the `name` of a summary. */
  readonly registration?: string;
  readonly app?: string;
  readonly instance?: number;
  /** The id of the session that ran it. */
  readonly session?: string;
  /** Only what started then or later: a time, or how long ago (`"24h"`). */
  readonly since?: TimeInput | Duration;
  /** Only what started before then. */
  readonly until?: TimeInput | Duration;
};

export type RunPage = Page<RunRecord>;

const known = [
  ...(["status", "kind", "name", "registration", "app", "instance", "session", "since", "until"] as const),
  ...(["limit", "after"] as const),
] satisfies readonly (keyof RunFilter)[];

/** Rows by their number, both ends included. */
type Range = { readonly from: number; readonly to: number };

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

/** Where matching runs can be, the highest numbers first: what is not folded yet, and what rollups know of. */
async function rangesOf(store: Store, tenant: string, filter: RunFilter, when: When): Promise<Range[]> {
  const { kind, app, instance, registration, status } = filter;
  const asked = [kind, app, instance, registration, when.session, when.until, filter.since];
  const everywhere = [{ from: 0, to: Number.MAX_SAFE_INTEGER }];
  // By a status other than success few are found by their index; by nothing at all, the first are the ones.
  if (asked.every((each) => each === undefined || each === null) || isUnlike(status)) return everywhere;
  const mark = await readMark(store);
  const known = await store.readHeavy<{ first: number | null; last: number | null }>(sql`select
    min(run_rollup.first_seq) as first, max(run_rollup.last_seq) as last from ${rollupsOf(together(scopeOf(tenant, filter, when)))}`);
  const { first, last } = known[0] ?? {};
  // A job may be kept for longer than the counts of its time: what these do not know of has lower numbers than what they do.
  const older = when.session === undefined && when.since < (await countsGoneUntil(store, tenant));
  const to = last == null ? (older ? mark : null) : Math.min(last, mark);
  const folded = to === null ? [] : [{ from: older ? 0 : (first ?? 0), to }];
  return [{ from: mark + 1, to: Number.MAX_SAFE_INTEGER }, ...folded];
}

/** Counts of what was before then have left. */
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

/** Whether one of the two indexes beside the number fits. */
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
    // The planner takes the index of what did not succeed only when it is told so in its own words.
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
