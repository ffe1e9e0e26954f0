// The slowest runs of a stretch. No index knows durations; but the so many slowest runs are in the so many hours that hold
// the longest one each, and of those in the so many minutes: rollups lead to them, and only those minutes are read.
import { sql, type Sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { byNumber, rowSet } from "../../storage/word.ts";
import { minuteMs } from "../rollup/read-slice.ts";
import { hourMs } from "../rollup/write-rollup.ts";
import { rollupsOf, type Scope } from "./scope.ts";

type Spot = { readonly series_seq: number; readonly at: number; readonly max_ms: number };

const columns = { series_seq: "integer", at: "integer" } as const;

/** The numbers of the slowest runs, the slowest first. What has left by retention is not among them. */
export async function findSlow(store: Store, scope: Scope, limit: number): Promise<number[]> {
  const session = scope.pieces.find(({ span }) => span === "session");
  const statement =
    session === undefined
      ? slowestIn(await longestMinutes(store, scope, limit), limit)
      : slowestOf(scope, session.from_at, limit);
  const runs = await store.readHeavy<{ seq: number }>(statement);
  return runs.map(({ seq }) => seq);
}

/** The minutes that hold the longest run each: those of whole hours by way of their hours, the others by themselves. */
async function longestMinutes(store: Store, scope: Scope, limit: number): Promise<Spot[]> {
  const longest = (pieces: Scope["pieces"]): Promise<Spot[]> =>
    pieces.length === 0
      ? Promise.resolve([])
      : store.readHeavy(sql`select run_rollup.series_seq, run_rollup.at, run_rollup.max_ms
          from ${rollupsOf({ ...scope, pieces })} order by run_rollup.max_ms desc limit ${limit}`);
  const whole = scope.pieces
    .filter(({ span }) => span !== "minute")
    .map((piece) => ({ ...piece, span: "hour" as const }));
  const hours = await longest(whole);
  const inHours = await store.readHeavy<Spot>(sql`select run_rollup.series_seq, run_rollup.at, run_rollup.max_ms
    from ${rowSet("v", columns, hours)} cross join run_rollup where run_rollup.series_seq = v.series_seq
      and run_rollup.span = 'minute' and run_rollup.at >= v.at and run_rollup.at < v.at + ${hourMs}
    order by run_rollup.max_ms desc limit ${limit}`);
  const alone = await longest(scope.pieces.filter(({ span }) => span === "minute"));
  return [...inHours, ...alone].toSorted((a, b) => b.max_ms - a.max_ms).slice(0, limit);
}

function slowestIn(minutes: readonly Spot[], limit: number): Sql {
  return sql`select run.seq from ${rowSet("v", columns, minutes)} cross join run_rollup cross join run_series cross join run ${byNumber}
    where run_rollup.series_seq = v.series_seq and run_rollup.span = 'minute' and run_rollup.at = v.at
      and run.started_at >= v.at and run.started_at < v.at + ${minuteMs} and ${ofRollup}
    order by run.duration_ms desc, run.seq limit ${limit}`;
}

// Counts of a session are not kept by minute, so all that it ran is read.
function slowestOf(scope: Scope, session: number, limit: number): Sql {
  return sql`select run.seq from run ${byNumber} cross join ${rollupsOf(scope)} and run.session_seq = ${session} and ${ofRollup}
    order by run.duration_ms desc, run.seq limit ${limit}`;
}

/** The runs that a rollup of its series counts, and others of the same minutes that the caller leaves out. */
const ofRollup: Sql = sql`run_series.seq = run_rollup.series_seq and run.seq >= run_rollup.first_seq
  and run.seq <= run_rollup.last_seq and run.tenant_id = run_series.tenant_id and run.kind = run_series.kind
  and coalesce(run.registration, run.name) = run_series.name and coalesce(run.app, '') = run_series.app
  and coalesce(run.instance, -1) = run_series.instance`;
