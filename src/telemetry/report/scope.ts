// Which series and which stretch of time a question is about, in the form that statements over rollups need.
import { checkCount } from "../../core/count.ts";
import { durationMs, type Duration } from "../../core/duration.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { isoTime, timeMs, type TimeInput } from "../../core/time.ts";
import { joinSql, sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { rowSet, seekEach } from "../../storage/word.ts";
import { wholeName, dayMs, hourMs, minuteMs } from "../rollup/series.ts";
import { onlyOwn } from "../session.ts";

export type SeriesFilter = {
  /** `job`, `listener` (live), `delivery`, `schedule`, `direct`, `call`. */
  readonly kind?: string | undefined;
  /** The name of the listener or schedule, or of the job. */
  readonly name?: string | undefined;
  readonly app?: string | undefined;
  readonly instance?: number | undefined;
};

export type ScopeOptions = SeriesFilter &
  WindowOptions & {
    /** Only runs of this session; not together with `since` and `until`. */
    readonly session?: string;
  };

export const scopeOptions = ["kind", "name", "app", "instance", "since", "until", "session"] as const;

export type Scope = {
  readonly tenant: string;
  /** The tenant that asks; null for the owner of the whole book. */
  readonly seenBy: string | null;
  readonly window: Window;
  readonly filter: SeriesFilter;
  readonly pieces: readonly (Piece | SessionPiece)[];
};

type SessionPiece = { readonly span: "session"; readonly from_at: number; readonly to_at: number };

/** Whose runs, and who asks. */
export type Viewer = Pick<Scope, "tenant" | "seenBy">;

export async function toScope(store: Store, viewer: Viewer, options: ScopeOptions): Promise<Scope> {
  const { session, since, until, kind, name, app, instance } = options;
  const filter = { kind, name, app, instance };
  if (filter.instance !== undefined) checkCount(filter.instance, "instance", 0);
  if (name === wholeName) throw invalid("name is empty: give the name of a job, listener or schedule, or leave it out");
  const now = store.clock.now();
  if (session === undefined) {
    const window = toWindow(now, options);
    return { ...viewer, window, filter, pieces: piecesOf(window) };
  }
  if (since !== undefined || until !== undefined) {
    throw invalid("a session has its own beginning and end: leave out since and until, or the session");
  }
  const found = await findSession(store, viewer.seenBy, session);
  const window = { since: found.started_at, until: found.stopped_at ?? now };
  return { ...viewer, window, filter, pieces: [{ span: "session", from_at: found.seq, to_at: found.seq + 1 }] };
}

/** For a tenant, a session that ran nothing of its own does not exist. */
export async function findSession(
  store: Store,
  seenBy: string | null,
  id: string,
): Promise<{ seq: number; started_at: number; stopped_at: number | null }> {
  const [row] = await store.read<{ seq: number; started_at: number; stopped_at: number | null }>(
    sql`select seq, started_at, stopped_at from daybook_session session where id = ${id} ${onlyOwn(seenBy)}`,
  );
  if (row === undefined) throw new DaybookError("not_found", `there is no session ${id}`, { details: { id } });
  return row;
}

/** The same scope for a question that does not ask for names: about all runs, or all of a kind, which one series counts. */
export function together(scope: Scope): Scope {
  const { name, app, instance } = scope.filter;
  if (name !== undefined || app !== undefined || instance !== undefined) return scope;
  return { ...scope, filter: { ...scope.filter, name: wholeName } };
}

/** The series of the scope, as a condition. */
export function ofSeries({ tenant, filter: { kind, name, app, instance } }: Scope): Sql {
  return joinSql([
    sql`run_series.tenant_id = ${tenant}`,
    ...(name === undefined ? [sql`and run_series.name <> ${wholeName}`] : []),
    ...(kind === undefined ? [] : [sql`and run_series.kind = ${kind}`]),
    ...(name === undefined ? [] : [sql`and run_series.name = ${name}`]),
    ...(app === undefined ? [] : [sql`and run_series.app = ${app}`]),
    ...(instance === undefined ? [] : [sql`and run_series.instance = ${instance}`]),
  ]);
}

/** The rollups of the scope, each found by a seek. It ends with a condition, so an `and` may follow. */
export function rollupsOf(scope: Scope): Sql {
  const columns = { span: "text", from_at: "integer", to_at: "integer" } as const;
  const found = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = piece.span
    and run_rollup.at >= piece.from_at and run_rollup.at < piece.to_at`;
  return sql`daybook_run_series run_series cross join ${rowSet("piece", columns, scope.pieces)} ${seekEach("run_rollup", found)}
    where ${ofSeries(scope)}`;
}

export type WindowOptions = {
  /** From when on, or how long ago (`"24h"`, the default). Rounded down to its minute. */
  readonly since?: TimeInput | Duration;
  /** Until when; default now. Rounded up to its minute. */
  readonly until?: TimeInput | Duration;
};

/** A stretch of time that rollups can answer for: from a whole minute to a whole minute. */
export type Window = { readonly since: number; readonly until: number };

export type Piece = { readonly span: "minute" | "hour" | "day"; readonly from_at: number; readonly to_at: number };

const durationText = /^\d+(?:\.\d+)?\s*[a-z]+$/i;

/** A time, or a duration back from now. */
export function momentMs(now: number, given: TimeInput | Duration, what: string): number {
  return typeof given === "string" && durationText.test(given) ? now - durationMs(given, what) : timeMs(given, what);
}

export function toWindow(now: number, { since = "24h", until }: WindowOptions): Window {
  const from = momentMs(now, since, "since");
  const to = until === undefined ? now + 1 : momentMs(now, until, "until");
  if (from >= to) throw invalid(`since ${isoTime(from)} is not before until ${isoTime(to)}`);
  return { since: from - (from % minuteMs), until: Math.ceil(to / minuteMs) * minuteMs };
}

/** The window in the largest spans that fit: a year is some hundred rows of each series, not half a million. */
export function piecesOf({ since, until }: Window): Piece[] {
  const [firstHour, lastHour] = [up(since, hourMs), down(until, hourMs)];
  if (firstHour > lastHour) return [{ span: "minute", from_at: since, to_at: until }];
  const [firstDay, lastDay] = [up(since, dayMs), down(until, dayMs)];
  const hours: Piece[] =
    firstDay > lastDay
      ? [{ span: "hour", from_at: firstHour, to_at: lastHour }]
      : [
          { span: "hour", from_at: firstHour, to_at: firstDay },
          { span: "day", from_at: firstDay, to_at: lastDay },
          { span: "hour", from_at: lastDay, to_at: lastHour },
        ];
  const pieces: Piece[] = [
    { span: "minute", from_at: since, to_at: firstHour },
    ...hours,
    { span: "minute", from_at: lastHour, to_at: until },
  ];
  return pieces.filter(({ from_at: from, to_at: to }) => from < to);
}

function up(ms: number, span: number): number {
  return Math.ceil(ms / span) * span;
}

function down(ms: number, span: number): number {
  return Math.floor(ms / span) * span;
}
