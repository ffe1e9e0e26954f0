// The same on a PostgreSQL that syncs to a disk, against one connection that awaits each of its transactions.
import { Client } from "pg";
import { open } from "../../src/index.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { sql } from "../../src/storage/sql.ts";
import { durablePostgres } from "../../test/support/postgres.ts";
import { noteBody } from "../harness/bare-sqlite.ts";
import { inFlight, oneByOne } from "../harness/load.ts";
import type { Report } from "../harness/report.ts";

export async function comparePostgres(report: Report): Promise<void> {
  const server = await durablePostgres();
  try {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query("create table note (id bigint generated always as identity primary key, body text not null)");
    const { rows } = await client.query<{ server_version: string }>("show server_version");
    report.note(`PostgreSQL ${rows[0]?.server_version}, fsync on`);
    await compareWithBare(report, server.url, client);
    await client.end();
  } finally {
    await server.stop();
  }
}

async function compareWithBare(report: Report, url: string, client: Client): Promise<void> {
  const store = await openStore(url, migrations);
  const book = await open(url);
  const alone = {
    what: "one transaction per insert",
    load: oneByOne(async () => {
      await client.query("begin");
      await client.query({ name: "insert", text: "insert into note (body) values ($1)", values: [noteBody] });
      await client.query("commit");
    }),
  };
  const shared = (): Promise<number> =>
    store.write((tx) => tx.run(sql`insert into note (body) values (${noteBody})`), { by: "shared" });
  const user = (): Promise<unknown> => book.write((tx) => tx.sql`insert into note (body) values (${noteBody})`);
  await report.compare("shared units, 100 in flight", inFlight(100, shared), [alone]);
  await report.compare("shared units, one by one", oneByOne(shared), [alone]);
  await report.compare("book.write (SERIALIZABLE), 100 in flight", inFlight(100, user), [alone]);
  await report.compare("book.write (SERIALIZABLE), one by one", oneByOne(user), [alone]);
  await book.close();
  await store.close();
}
