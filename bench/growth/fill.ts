// Rows that would take too long to make one by one, written as the engine would have left them: doctor finds nothing wrong
// with them. Everything about this benchmark that knows the tables of a book is in this file.
import { Client } from "pg";
import { systemClock } from "../../src/core/clock.ts";
import { tie } from "../../src/jobs/state.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { rawSql } from "../../src/storage/sql.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { sampleParams } from "../harness/queue.ts";

/** A statement for the rows `from` to `to`. */
type Part = (from: number, to: number) => string;

export type Fill = { readonly rows: number; readonly parts: readonly Part[] };

type Columns = Readonly<Record<string, string>>;

/** Jobs that are done, each with its run. */
export function finished(rows: number): Fill {
  return { rows, parts: [into("daybook_job", job), into("daybook_run", run)] };
}

/** Jobs whose time has not come. */
export function delayed(rows: number): Fill {
  return { rows, parts: [into("daybook_job", { ...job, due_at: later }), into("daybook_line", waiting)] };
}

/** Jobs that wait for the one permit of a key, and before them the one that holds it: it runs as long as the book is open. */
export function blocked(rows: number): readonly Fill[] {
  const key = "'other\nfull'";
  const limited = into("daybook_job", { ...job, limits: `'{"key":1}'`, limit_key: key });
  const permit = { tenant_id: "'default'", limit_key: key, number: "0", job_seq: "i" };
  const ties = String(tie.limit);
  const waits = { ...line, ties, status: "'waiting'", waits_for: "'key'", waits_key: "'default\nother\nfull'" };
  return [
    { rows: 1, parts: [limited, into("daybook_line", { ...running, ties }), into("daybook_permit", permit)] },
    { rows, parts: [limited, into("daybook_line", waits)] },
  ];
}

/** Jobs of a name that no session hosts. */
export function unhosted(rows: number): Fill {
  const waits = { ...line, status: "'waiting'", waits_for: "'host'", waits_key: "'other'" };
  return { rows, parts: [into("daybook_job", job), into("daybook_line", waits)] };
}

/** Delayed jobs of the measured name, each with a key and a limit of its own. */
export function keyed(rows: number): Fill {
  const own = { key: "'key-' || i", key_scope: "'done'", limits: `'{"key":1}'`, limit_key: "'keyed\nkey-' || i" };
  const held = { tenant_id: "'default'", name: "'keyed'", key: "'key-' || i", job_seq: "i" };
  return {
    rows,
    parts: [
      into("daybook_job", { ...job, ...own, name: "'keyed'", due_at: later }),
      into("daybook_line", { ...waiting, ties: String(tie.key | tie.limit) }),
      into("daybook_job_key", held),
    ],
  };
}

/** Queues that have been used and are empty. */
export function lanes(rows: number): Fill {
  return {
    rows,
    parts: [into("daybook_lane", { seq: `${lane} + i`, tenant_id: "'default'", queue: "'empty-' || i" })],
  };
}

const at = String(systemClock.now());
const later = "4102444800000"; // in the year 2100
const lane = "(select min(seq) from daybook_lane where tenant_id = 'default')";
const session = "(select max(seq) from daybook_session where status = 'running')";

const job: Columns = {
  seq: "i",
  tenant_id: "'default'",
  // As long as a real one and, like those, greater than the one before.
  id: "'00000000-0000-7000-8000-' || (100000000000 + i)",
  lane_seq: lane,
  name: "'other'",
  priority: "100",
  created_at: at,
  params: `'${JSON.stringify(sampleParams(0))}'`,
  attempts: "4",
  losses_max: "3",
};

/** In the lane of the measured jobs and before all of them, because its priority is higher. */
const line: Columns = {
  seq: "i",
  lane_seq: lane,
  priority: "100",
  position: "i * 100",
  available_at: at,
  ties: "0",
};

const waiting: Columns = { ...line, status: "'waiting'", waits_for: "'time'", available_at: later };

const runId = "'00000000-0000-7000-9000-' || (100000000000 + i)";
const running: Columns = { ...line, status: "'running'", run_id: runId, session_seq: session, started_at: at };

const run: Columns = {
  tenant_id: "'default'",
  id: runId,
  kind: "'job'",
  name: "'other'",
  job_seq: "i",
  session_seq: session,
  attempt: "1",
  started_at: at,
  ended_at: at,
  duration_ms: "1",
  status: "'success'",
};

function into(table: string, columns: Columns): Part {
  return (from, to) => `insert into ${table} (${Object.keys(columns).join(", ")})
    with recursive n (i) as (select ${from} union all select i + 1 from n where i < ${to})
    select ${Object.values(columns).join(", ")} from n`;
}

const step = 50_000;

/** Writes the rows into an open book that has been used: its session and its first lane exist. */
export async function fill(place: string, fills: readonly Fill[]): Promise<void> {
  const store = await openStore(place, migrations);
  const execute = (text: string): Promise<unknown> => store.write((tx) => tx.run(rawSql(text)));
  const [last] = await store.read<{ seq: number }>(rawSql("select max(seq) as seq from daybook_job"));
  let next = (last?.seq ?? 0) + 1;
  for (const { rows, parts } of fills) {
    for (let done = 0; done < rows; done += step) {
      const from = next;
      next += Math.min(step, rows - done);
      for (const part of parts) await execute(part(from, next - 1));
    }
  }
  // What a book does by itself in the time that it takes to get so many rows, so that it is not measured.
  await foldRuns(store);
  if (store.dialect === "sqlite") await execute("analyze");
  else {
    await execute(`select setval(pg_get_serial_sequence('daybook_job', 'seq'), ${next})`);
    await vacuum(place);
  }
  await store.close();
}

async function vacuum(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of ["vacuum analyze", "checkpoint"]) await client.query(statement);
  } finally {
    await client.end();
  }
}
