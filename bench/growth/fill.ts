// Rows that would take too long to make one by one, written as the engine would have left them. Everything about this
// benchmark that knows the tables of a book is in this file.
import { migrations } from "../../src/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { rawSql } from "../../src/storage/sql.ts";

/** A statement for the rows `from` to `to`. */
type Part = (from: number, to: number) => string;

export type Fill = { readonly rows: number; readonly parts: readonly Part[] };

/** Jobs that are done, each with its run. */
export function finished(rows: number): Fill {
  return {
    rows,
    parts: [
      (from, to) => jobs(from, to, { ...job, status: "'completed'", run_id: "'done-' || i", finished_at: "2" }),
      (
        from,
        to,
      ) => `insert into daybook_run (tenant_id, id, kind, name, job_id, session_seq, attempt, started_at, ended_at,
          duration_ms, status)
        ${numbers(from, to)} select 'default', 'done-' || i, 'job', 'other', 'job-' || i, 1, 1, 1, 2, 1, 'success' from n`,
    ],
  };
}

/** Jobs whose time has not come. */
export function delayed(rows: number): Fill {
  return { rows, parts: [(from, to) => jobs(from, to, { ...job, waits_for: "'time'" })] };
}

/** Jobs that wait for one permit of one key. */
export function blocked(rows: number): Fill {
  const key = "'other\nfull'";
  const limited = { ...job, limits: `'{"key":1}'`, limit_key: key, waits_for: "'key'", waits_key: key };
  return { rows, parts: [(from, to) => jobs(from, to, limited)] };
}

/** Jobs of a name that no session hosts. */
export function unhosted(rows: number): Fill {
  return { rows, parts: [(from, to) => jobs(from, to, { ...job, waits_for: "'host'", waits_key: "'other'" })] };
}

/** Delayed jobs of the measured name, each with a key and a limit of its own. */
export function keyed(rows: number): Fill {
  const own = { key: "'key-' || i", key_held: "'key-' || i", key_scope: "'done'" };
  const limited = { limits: `'{"key":1}'`, limit_key: "'keyed\nkey-' || i" };
  return {
    rows,
    parts: [(from, to) => jobs(from, to, { ...job, ...own, ...limited, name: "'keyed'", waits_for: "'time'" })],
  };
}

/** Queues that have been used and are empty. */
export function lanes(rows: number): Fill {
  return {
    rows,
    parts: [
      (from, to) =>
        `insert into daybook_lane (tenant_id, queue) ${numbers(from, to)} select 'default', 'empty-' || i from n`,
    ],
  };
}

/** Of the first lane, and before every measured job, because its priority is higher. */
const job = {
  position: "i * 100",
  tenant_id: "'default'",
  id: "'job-' || i",
  lane_seq: "1",
  name: "'other'",
  status: "'waiting'",
  priority: "100",
  created_at: "1",
  available_at: "4102444800000",
  params: "'{}'",
  origin: "'enqueued'",
  attempt: "1",
  attempts: "4",
  losses: "0",
  losses_max: "3",
  alone: "0",
} as const;

function jobs(from: number, to: number, columns: Readonly<Record<string, string>>): string {
  return `insert into daybook_job (${Object.keys(columns).join(", ")})
    ${numbers(from, to)} select ${Object.values(columns).join(", ")} from n`;
}

function numbers(from: number, to: number): string {
  return `with recursive n (i) as (select ${from} union all select i + 1 from n where i < ${to})`;
}

const step = 50_000;

/** Writes the rows into a book that has been used: its first session and its first lane exist. */
export async function fill(place: string, fills: readonly Fill[]): Promise<void> {
  const store = await openStore(place, migrations);
  // No two fills use the same number, and none of them one that the book gave.
  let next = 1_000_000;
  for (const { rows, parts } of fills) {
    for (let done = 0; done < rows; done += step) {
      const from = next;
      next += Math.min(step, rows - done);
      for (const part of parts) await store.write((tx) => tx.run(rawSql(part(from, next - 1))));
    }
  }
  await store.write((tx) => tx.run(rawSql("analyze")));
  await store.close();
}
