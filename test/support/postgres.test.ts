import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { durablePostgres, freshDatabase, postgresUrl } from "./postgres.ts";

test("the tests run on PostgreSQL 18", async (t) => {
  const client = await connect(t, await postgresUrl());

  const { rows } = await client.query<{ server_version: string }>("show server_version");

  assert.match(rows[0]?.server_version ?? "", /^18\./);
});

test("two fresh databases do not see each other's tables", async (t) => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()]);
  t.after(() => Promise.all([one.drop(), other.drop()]));
  const inOne = await connect(t, one.url);
  const inOther = await connect(t, other.url);

  await inOne.query("create table note (body text)");

  assert.deepEqual(await tables(inOne), ["note"]);
  assert.deepEqual(await tables(inOther), []);
});

test("a dropped database is gone, with the connections it had", async (t) => {
  const database = await freshDatabase();
  const client = await connect(t, database.url);

  await database.drop();

  await assert.rejects(connect(t, database.url), { code: "3D000" });
  await assert.rejects(client.query("select 1"));
});

test("a durable server keeps what it committed, and nothing else, when it is killed", async (t) => {
  const server = await durablePostgres();
  t.after(() => server.stop());
  const client = await connect(t, server.url);
  await client.query("create table note (body text)");
  await client.query("insert into note values ('committed')");
  await client.query("begin");
  await client.query("insert into note values ('open')");
  const pid = server.pid;

  await server.kill();
  await assert.rejects(connect(t, server.url), { code: "ECONNREFUSED" });
  await server.restart();

  const again = await connect(t, server.url);
  assert.deepEqual((await again.query("select body from note")).rows, [{ body: "committed" }]);
  assert.deepEqual((await again.query("show fsync")).rows, [{ fsync: "on" }]);
  assert.notEqual(server.pid, pid);
});

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined); // Its server or its database may go before it does.
  await client.connect();
  t.after(() => client.end());
  return client;
}

async function tables(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ tablename: string }>(
    "select tablename from pg_tables where schemaname = 'public' order by tablename",
  );
  return rows.map((row) => row.tablename);
}
