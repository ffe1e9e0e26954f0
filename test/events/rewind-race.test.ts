// A rewind and the end of the catch-up before it meet on the row of their listener. Whichever commits first, the other one sees it:
// the listener must never be left catching up without a job that does it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "pg";
import { catchUps } from "../../src/events/catch-up.ts";
import { event, listener } from "../../src/index.ts";
import type { Ended } from "../../src/jobs/kind.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { sql } from "../../src/storage/sql.ts";
import { cleanup, openTest } from "../support/open-test.ts";

const Said = event("talk.said");

test("postgres: a catch-up that ends while a rewind is about to commit waits for it and makes the next one", async (t) => {
  const { book, url } = await openTest(t, "postgres", {
    use: [Said, listener("l", { on: Said, run: () => undefined })],
  });
  const { store } = roomsOf(book);
  const rewinder = new Client({ connectionString: url });
  await rewinder.connect();
  cleanup(t, () => rewinder.end());
  await rewinder.query("set search_path to daybook; begin");
  const { rows } = await rewinder.query<{ seq: string }>(
    "update daybook_listener set state = 'catching_up', heard_seq = 0, heard_to = 0 where name = 'l' returning seq",
  );
  const seq = Number(rows[0]?.seq);
  const ended = { job: { kind_seq: seq }, outcome: { status: "completed" } } as Ended;

  const settled = store.write((tx) => Promise.resolve(catchUps.ended?.(tx, [ended])));
  await untilItWaitsOrEnds(url, settled);
  await rewinder.query("commit");
  await settled;

  const [line] = await store.read<{ jobs: number }>(
    sql`select count(*) as jobs from daybook_line where kind = 'catch_up' and kind_seq = ${seq}`,
  );
  assert.equal(line?.jobs, 1);
});

async function untilItWaitsOrEnds(url: string, verb: Promise<unknown>): Promise<void> {
  const watcher = new Client({ connectionString: url });
  await watcher.connect();
  let ended = false;
  verb.finally(() => (ended = true)).catch(() => undefined);
  for (let waits = false; !waits && !ended;) {
    const found = await watcher.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    waits = found.rows.length > 0;
  }
  await watcher.end();
}
