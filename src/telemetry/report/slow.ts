// The slowest runs of a stretch. No index knows durations, but rollups know the longest run of every hour and minute: the ten
// slowest runs lie in the ten hours with the longest runs, and in ten minutes of those hours. Only these minutes are read.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { byNumber, rowSet, seekEach } from "../../storage/word.ts";
import { hourMs, minuteMs } from "../rollup/series.ts";
import { piecesOf, rollupsOf, type Scope } from "./scope.ts";

type Spot = { readonly series_seq: number; readonly at: number; readonly max_ms: number };
type Found = { readonly seq: number; readonly duration_ms: number };

const columns = { series_seq: "integer", at: "integer" } as const;

/** The numbers of the slowest runs, the slowest first. Runs that retention removed are not among them. */
export async function findSlow(store: Store, scope: Scope, limit: number): Promise<number[]> {
  const session = scope.pieces.find(({ span }) => span === "session")?.from_at;
  const found =
    session === undefined
      ? await slowestIn(store, (await longestMinutes(store, scope, limit)).minutes, limit, sql``)
      : await slowestOfSession(store, scope, session, limit);
  return found.map(({ seq }) => seq);
}

// No rollup counts a session's runs by minute, so this reads whole minutes of its lifetime, with the runs of all sessions: more
// and more minutes, until no unread run can have taken longer than those found.
async function slowestOfSession(store: Store, scope: Scope, session: number, limit: number): Promise<Found[]> {
  const { since, until } = scope.window;
  const window = { since: since - (since % minuteMs), until: Math.ceil((until + 1) / minuteMs) * minuteMs };
  const within: Scope = { ...scope, pieces: piecesOf(window) };
  for (let looked = 2 * limit; ; looked *= 4) {
    const { minutes, restMs } = await longestMinutes(store, within, looked);
    const found = await slowestIn(store, minutes, limit, sql`and run.session_seq = ${session}`);
    const last = found[limit - 1];
    if (restMs === null || (last !== undefined && last.duration_ms >= restMs)) return found;
  }
}

/** The `limit` minutes with the longest runs. Minutes of whole hours are found through their hours. No run outside these minutes
 *  took longer than `restMs`, which is null when there are none. */
async function longestMinutes(
  store: Store,
  scope: Scope,
  limit: number,
): Promise<{ minutes: readonly Spot[]; restMs: number | null }> {
  const longest = (pieces: Scope["pieces"]): Promise<Spot[]> =>
    pieces.length === 0
      ? Promise.resolve([])
      : store.readHeavy(sql`select run_rollup.series_seq, run_rollup.at, run_rollup.max_ms
          from ${rollupsOf({ ...scope, pieces })} order by run_rollup.max_ms desc limit ${limit + 1}`);
  const whole = scope.pieces
    .filter(({ span }) => span !== "minute")
    .map((piece) => ({ ...piece, span: "hour" as const }));
  const hours = await longest(whole);
  const ofHour = sql`run_rollup.series_seq = v.series_seq and run_rollup.span = 'minute' and run_rollup.at >= v.at
    and run_rollup.at < v.at + ${hourMs}`;
  const inHours = await store.readHeavy<Spot>(sql`select run_rollup.series_seq, run_rollup.at, run_rollup.max_ms
    from ${rowSet("v", columns, hours.slice(0, limit))} ${seekEach("run_rollup", ofHour)}
    order by run_rollup.max_ms desc limit ${limit + 1}`);
  const alone = await longest(scope.pieces.filter(({ span }) => span === "minute"));
  const all = [...inHours, ...alone].toSorted((a, b) => b.max_ms - a.max_ms);
  const rest = [all[limit], hours[limit]].flatMap((spot) => (spot === undefined ? [] : spot.max_ms));
  return { minutes: all.slice(0, limit), restMs: rest.length === 0 ? null : Math.max(...rest) };
}

/** The slowest runs that the rollups of these minutes count. */
function slowestIn(store: Store, minutes: readonly Spot[], limit: number, which: Sql): Promise<Found[]> {
  const counts = sql`run_rollup.series_seq = v.series_seq and run_rollup.span = 'minute' and run_rollup.at = v.at`;
  const numbers = sql`run.seq >= run_rollup.first_seq and run.seq <= run_rollup.last_seq`;
  return store.readHeavy(sql`select run.seq, run.duration_ms
    from ${rowSet("v", columns, minutes)} ${seekEach("run_rollup", counts)}
    cross join daybook_run_series run_series ${seekEach("run", numbers, byNumber)}
    where run_series.seq = run_rollup.series_seq and run.started_at >= v.at and run.started_at < v.at + ${minuteMs}
      and run.tenant_id = run_series.tenant_id and run.kind = run_series.kind
      and coalesce(run.registration, run.name) = run_series.name and coalesce(run.app, '') = run_series.app
      and coalesce(run.instance, -1) = run_series.instance ${which}
    order by run.duration_ms desc, run.seq limit ${limit}`);
}
