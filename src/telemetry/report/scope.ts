// Which series and which stretch a question is about, as statements over rollups need it.
import { checkCount } from "../../core/count.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { joinSql, sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { rowSet, seekEach } from "../../storage/word.ts";
import { wholeName } from "../rollup/series.ts";
import { onlyOwn } from "../session.ts";
import { piecesOf, toWindow, type Piece, type Window, type WindowOptions } from "./window.ts";

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
    /** Only what this session ran, from its start to its end; not together with `since` and `until`. */
    readonly session?: string;
  };

export const scopeOptions = ["kind", "name", "app", "instance", "since", "until", "session"] as const;

export type Scope = {
  readonly tenant: string;
  /** The tenant that asks; null when the whole book's owner does. */
  readonly seenBy: string | null;
  readonly window: Window;
  readonly filter: SeriesFilter;
  readonly pieces: readonly (Piece | SessionPiece)[];
};

type SessionPiece = { readonly span: "session"; readonly from_at: number; readonly to_at: number };

/** Whose rows, and who asks. */
export type Viewer = Pick<Scope, "tenant" | "seenBy">;

export async function toScope(store: Store, viewer: Viewer, options: ScopeOptions): Promise<Scope> {
  const { session, since, until, kind, name, app, instance } = options;
  const filter = { kind, name, app, instance };
  if (filter.instance !== undefined) checkCount(filter.instance, "instance", 0);
  if (name === wholeName) throw invalid("name is empty: give the name of a job, listener or schedule, or leave it out");
  const now = store.clock.now();
  if (session === undefined) {
    const window = toWindow(now, {
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
    });
    return { ...viewer, window, filter, pieces: piecesOf(window) };
  }
  if (since !== undefined || until !== undefined) {
    throw invalid("a session has its own beginning and end: leave out since and until, or the session");
  }
  const found = await findSession(store, viewer.seenBy, session);
  const window = { since: found.started_at, until: found.stopped_at ?? now };
  return { ...viewer, window, filter, pieces: [{ span: "session", from_at: found.seq, to_at: found.seq + 1 }] };
}

/** One that a tenant has nothing to do with is as unknown to it as a random id. */
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

/** The same for a question to which it does not matter what ran: if it is about everything, or about a kind, that is counted
 *  together already. */
export function together(scope: Scope): Scope {
  const { name, app, instance } = scope.filter;
  if (name !== undefined || app !== undefined || instance !== undefined) return scope;
  return { ...scope, filter: { ...scope.filter, name: wholeName } };
}

/** The series that it is about. */
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

/** The rollups of those series in that stretch, each found by a seek. It ends with a condition, so more may follow it. */
export function rollupsOf(scope: Scope): Sql {
  const columns = { span: "text", from_at: "integer", to_at: "integer" } as const;
  const found = sql`run_rollup.series_seq = run_series.seq and run_rollup.span = piece.span
    and run_rollup.at >= piece.from_at and run_rollup.at < piece.to_at`;
  return sql`daybook_run_series run_series cross join ${rowSet("piece", columns, scope.pieces)} ${seekEach("run_rollup", found)}
    where ${ofSeries(scope)}`;
}
