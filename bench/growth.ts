// What stands in front costs nothing: the full cycle of small batches beside a million jobs that cannot run, against
// the same on an empty book.
import { open } from "../src/index.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { openBare } from "./harness/bare-sqlite.ts";
import { scratch } from "./harness/scratch.ts";
import { cycle, nothing } from "./jobs/cycle.ts";

const million = 1_000_000;

/** How the million stands there. All of it is before the measured jobs: its priority is higher. */
const crowds: Readonly<Record<string, string>> = {
  "finished jobs, each with its run": "'completed', null, null, 1",
  "delayed jobs": "'waiting', 'time', null, null",
  "jobs behind one full key": "'waiting', 'key', 'other' || char(10) || 'full', null",
  "jobs of a name that nobody hosts": "'waiting', 'host', 'other', null",
};

export const growth: Benchmark = {
  name: "growth",
  title: "jobs beside a million others",
  async run(report) {
    const empty = await open(scratch("empty.db"), { use: [nothing] });
    for (const [what, state] of Object.entries(crowds)) {
      const book = await open(scratch(`${what.replaceAll(/\W+/g, "-")}.db`), { use: [nothing] });
      await cycle(book)({ over: () => true }); // the lane exists from here on
      crowd(book.location, state);
      await report.compare(`with ${what}`, cycle(book), [{ what: "empty", load: cycle(empty), goalMin: 0.67 }]);
      await book.close();
    }
    await empty.close();
  },
};

function crowd(path: string, state: string): void {
  const db = openBare(path, "full");
  db.exec(`begin;
    with recursive n (i) as (select 1 union all select i + 1 from n where i < ${million})
    insert into job (position, tenant_id, id, lane_seq, name, priority, created_at, available_at, params, origin, attempt,
      attempts, losses, losses_max, alone, run_id, limits, limit_key, status, waits_for, waits_key, finished_at)
    select (1000000 + i) * 100, 'default', 'crowd-' || i, 1, 'other', 100, 1, 4102444800000, '{}', 'enqueued', 1, 4, 0, 3, 0,
      'crowd-' || i, '{"key":1}', 'other' || char(10) || 'full', ${state} from n;
    insert into run (tenant_id, id, kind, name, job_id, session_seq, attempt, started_at, ended_at, duration_ms, status)
    select tenant_id, run_id, 'job', name, id, 1, 1, 1, 2, 1, 'success' from job
    where name = 'other' and status = 'completed';
    commit; analyze`);
  db.close();
}
