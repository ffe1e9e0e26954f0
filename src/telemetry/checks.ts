// What must hold of sessions, runs and their counts; doctor checks it.
import { limits } from "../core/limits.ts";
import type { Check } from "../storage/checks.ts";
import { rawSql, sql } from "../storage/sql.ts";
import { anyOf } from "../storage/word.ts";
import { dayMs, hourMs } from "./rollup/series.ts";

const [hour, day] = [rawSql(String(hourMs)), rawSql(String(dayMs))];

export const telemetryChecks: readonly Check[] = [
  {
    promise: "T2",
    name: "a session has stopped exactly when it is no longer running",
    find: () => sql`select id as finding from daybook_session where (status = 'running') <> (stopped_at is null)`,
    advice: "report it: the table's own rules forbid this",
  },
  {
    promise: "T5",
    name: "a session does not stop before it started",
    find: () =>
      sql`select id as finding from daybook_session where stopped_at < started_at or last_heartbeat_at < started_at`,
    advice: "the wall clock was set far back while the session ran; do not trust durations of that time",
  },
  {
    promise: "T1",
    name: "rollups count every run up to the mark",
    // Counts stay when runs leave, so there are never fewer counts than runs. Runs older than the kept counts are left out.
    find: () => sql`select kept.kind || ' ' || kept.name as finding from (
        select tenant_id, kind, coalesce(registration, name) as name, coalesce(app, '') as app,
          coalesce(instance, -1) as instance, count(*) as runs
        from daybook_run run where seq <= (select folded_seq from daybook_run_fold) and started_at >= (
          select coalesce(max(until_at), 0) from daybook_eviction eviction where eviction.tenant_id = run.tenant_id and what = 'rollup')
        group by 1, 2, 3, 4, 5) as kept
      left join daybook_run_series run_series on run_series.tenant_id = kept.tenant_id and run_series.kind = kept.kind
        and run_series.name = kept.name and run_series.app = kept.app and run_series.instance = kept.instance
      left join daybook_run_rollup run_rollup on run_rollup.series_seq = run_series.seq and run_rollup.span = 'ever'
      where coalesce(run_rollup.runs, 0) < kept.runs`,
    advice: "report it; the counts of these names are too low for that time",
  },
  {
    promise: "T1",
    name: "the mark of counted runs is not beyond the last run",
    // PostgreSQL gives no number twice, so there the mark may stand above rows that have left.
    find: (dialect) =>
      dialect === "sqlite"
        ? sql`select folded_seq as finding from daybook_run_fold where folded_seq > (select coalesce(max(seq), 0) from daybook_run)`
        : sql`select folded_seq as finding from daybook_run_fold where folded_seq > (select last_value from daybook_run_seq_seq)`,
    advice:
      "rows of run were removed by hand: set folded_seq of run_fold to the highest seq of run, or new runs are not counted",
  },
  {
    promise: "T3",
    name: "an hour counts what its minutes count, and a day what its hours do",
    // Retention removes the larger span first, so a span that is there has its parts.
    find: () => sql`select run_series.kind || ' ' || run_series.name || ' ' || whole.span || ' ' || whole.at as finding
      from daybook_run_rollup as whole join daybook_run_series run_series on run_series.seq = whole.series_seq
      where whole.span in ('hour', 'day') and whole.runs <> (select coalesce(sum(part.runs), 0) from daybook_run_rollup as part
        where part.series_seq = whole.series_seq and part.span = case whole.span when 'hour' then 'minute' else 'hour' end
          and part.at >= whole.at and part.at < whole.at + case whole.span when 'hour' then ${hour} else ${day} end)
      order by 1`,
    advice: "rows of run_rollup were changed by hand; do not trust the counts of these hours and days",
  },
  {
    promise: "D4",
    name: "no running session began in the future",
    find: (_dialect, now) =>
      sql`select id as finding, seq from daybook_session where status = 'running' and started_at > ${now + limits.clockAheadMs}`,
    advice:
      "the clock was wrong when it began; it ends at that time at the earliest unless it is mended: daybook mend --apply",
    mend: async (tx, seqs) =>
      tx.run(sql`update daybook_session set started_at = ${tx.now}, last_heartbeat_at = ${tx.now}
        where seq ${anyOf("integer", seqs)} and status = 'running' and started_at > ${tx.now + limits.clockAheadMs}`),
  },
];
