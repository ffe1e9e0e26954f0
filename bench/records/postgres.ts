// Commits of 32 writers on a PostgreSQL that syncs to a disk, against as many connections that each hold the counter of
// commits for a transaction of its own.
import { Pool } from "pg";
import { z } from "zod";
import { entity, open } from "../../src/index.ts";
import { durablePostgres } from "../../test/support/postgres.ts";
import { inFlight } from "../harness/load.ts";
import type { Report } from "../harness/report.ts";

const writers = 32;
const Item = entity("item", { schema: z.object({ id: z.string(), text: z.string() }), key: "id" });

export async function comparePostgresCommits(report: Report): Promise<void> {
  const server = await durablePostgres();
  try {
    const book = await open(server.url, { use: [Item], worker: false });
    const pool = new Pool({ connectionString: server.url, max: writers });
    await pool.query("create table counter (id bigint not null); insert into counter values (0)");
    await pool.query("create table bare (commit_id bigint not null, key text not null, body jsonb not null)");
    let n = 0;
    const text = "x".repeat(100);
    const counted = async (): Promise<void> => {
      const client = await pool.connect();
      await client.query("begin");
      const { rows } = await client.query<{ id: string }>("update counter set id = id + 1 returning id");
      await client.query("insert into bare values ($1, $2, $3)", [rows[0]?.id, `k${n++}`, JSON.stringify({ text })]);
      await client.query("commit");
      client.release();
    };
    const put = (): Promise<unknown> => book.records.put(Item, { id: `k${n++}`, text });
    const write = (): Promise<unknown> => book.write((tx) => tx.records.put(Item, { id: `k${n++}`, text }));
    const reference = { what: "one counter per transaction", load: inFlight(writers, counted) };
    await report.compare(`PostgreSQL: book.records.put, ${writers} writers`, inFlight(writers, put), [
      { ...reference, goalMin: 5 },
    ]);
    await report.compare("PostgreSQL: book.write with one put, 4 writers", inFlight(4, write), [
      { what: reference.what, load: inFlight(4, counted) },
    ]);
    await pool.end();
    await book.close();
  } finally {
    await server.stop();
  }
}
