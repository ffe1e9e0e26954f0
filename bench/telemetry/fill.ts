// Fills a book with runs as an automation of many months leaves them, by SQL alone: live listeners of an app, jobs, fires of
// schedules, several sessions, errors and log lines.
import { rawSql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";

export const days = 9;
export const series = 50;

const sessions = 20;
const step = 50_000;
const lane = 1_000_000;

/** Returns the ids of the first session, which is over, and of the last, which runs. */
export async function fillRuns(store: Store, now: number, runs: number): Promise<{ first: string; last: string }> {
  const begin = now - days * 86_400_000;
  const eachMs = (days * 86_400_000) / runs;
  const sessionMs = (days * 86_400_000) / sessions;
  await store.write((tx) =>
    tx.run(
      rawSql(`insert into daybook_session (seq, id, host, pid, started_at, last_heartbeat_at, stopped_at, status)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < ${sessions})
        select n, 'session-' || n, 'bench', n, ${begin} + (n - 1) * ${sessionMs}, ${begin} + n * ${sessionMs},
          case when n < ${sessions} then ${begin} + n * ${sessionMs} end,
          case when n < ${sessions} then 'success' else 'running' end from n`),
    ),
  );
  await store.write((tx) =>
    tx.run(rawSql(`insert into daybook_lane (seq, tenant_id, queue) values (${lane}, 'default', 'default')`)),
  );
  for (let from = 0; from < runs; from += step) {
    const to = Math.min(runs, from + step);
    await store.write(async (tx) => {
      await tx.run(rawSql(jobRows({ from, to, begin, eachMs })));
      await tx.run(rawSql(runRows({ from, to, begin, eachMs, perSession: runs / sessions })));
      await tx.run(rawSql(logRows({ from, to, begin, eachMs })));
    });
  }
  return { first: "session-1", last: `session-${sessions}` };
}

type Part = { readonly from: number; readonly to: number; readonly begin: number; readonly eachMs: number };

/** Those of the runs below that belong to a job, which has the number of its run's id. */
function jobRows({ from, to, begin, eachMs }: Part): string {
  return `insert into daybook_job (seq, tenant_id, id, lane_seq, name, priority, created_at, params, attempts, losses_max, kind)
    with recursive n (n) as (select ${from} union all select n + 1 from n where n < ${to - 1})
    select n, 'default', printf('job-%012d', n), ${lane},
      case n % 10 when 8 then 'job-' else 'default/home/0/schedule-' end || (n / 10) % ${series}, 0,
      ${begin} + cast(n * ${eachMs} as integer), '{}', 4, 3, case n % 10 when 9 then 'schedule' end
    from n where n % 10 >= 8`;
}

// Ids are in the order of time, as real ones are, so those of one slice lie side by side in their index. Of ten runs eight are of live listeners, one is a job of no app and one was fired by a schedule of the app.
function runRows({ from, to, begin, eachMs, perSession }: Part & { readonly perSession: number }): string {
  return `insert into daybook_run (tenant_id, id, kind, name, job_seq, session_seq, attempt, started_at, ended_at, duration_ms,
      status, error_type, error_message, topic, app, instance, registration)
    with recursive n (n) as (select ${from} union all select n + 1 from n where n < ${to - 1}),
    one as (select n, n % 10 as k, (n / 10) % ${series} as s, ${begin} + cast(n * ${eachMs} as integer) as at,
      n % 100 = 7 as failed from n)
    select 'default', printf('run-%012d', n), case k when 8 then 'job' when 9 then 'schedule' else 'listener' end,
      case k when 8 then 'job-' || s when 9 then 'default/home/0/schedule-' || s else 'default/home/' || (n % 3) || '/listener-' || s end,
      case when k >= 8 then n end, 1 + cast(n / ${perSession} as integer), 1, at, at + 5,
      (n * 7919 % 977) * 0.5, case when failed then 'error' else 'success' end, case when failed then 'TypeError' end,
      case when failed then 'no lamp ' || n end, case when k < 8 then 'light' end, case when k <> 8 then 'home' end,
      case k when 8 then null when 9 then 0 else n % 3 end,
      case k when 8 then null when 9 then 'schedule-' || s else 'listener-' || s end
    from one`;
}

function logRows({ from, to, begin, eachMs }: Part): string {
  return `insert into daybook_run_log (tenant_id, run_id, logged_at, level, message)
    with recursive n (n) as (select ${from} union all select n + 1 from n where n < ${to - 1})
    select 'default', printf('run-%012d', n), ${begin} + cast(n * ${eachMs} as integer), case when n % 100 = 7 then 'warn' else 'info' end,
      'the lamp was asked' from n where n % 10 = 7`;
}
