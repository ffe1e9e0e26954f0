// Others share the database: another book, a role that means ill, and what a user's own statements leave behind.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import pg from "pg";
import { z } from "zod";
import { entity, event, job, listener, open, type Book } from "../../src/index.ts";
import { closeListeners } from "../../src/events/listener.ts";
import { closeLane } from "../../src/jobs/claim/lane.ts";
import { lockKeyOf, lockNames } from "../../src/storage/word.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { sql } from "../../src/storage/sql.ts";
import { cleanup, openTest, testUrl } from "../support/open-test.ts";

const Said = event<{ n: number }>("said");
const Note = entity("note", { schema: z.object({ id: z.string() }), key: "id" });
const work = job("work", { concurrency: 2, rate: { max: 100, per: "1m" }, run: () => undefined });
const hear = listener("hear", { on: Said, run: () => undefined });
const use = [Said, Note, work, hear];

async function openIn(t: TestContext, url: string, schema: string): Promise<Book> {
  const book = await open(url, { schema, use });
  cleanup(t, () => book.close());
  return book;
}

async function useAll(book: Book): Promise<void> {
  await book.jobs.enqueue(work, {}, { key: "k" });
  await book.events.publish(Said, { n: 1 });
  await book.records.put(Note, { id: "a" });
  await book.write(async (tx) => {
    await tx.jobs.enqueue(work, {});
    await tx.records.put(Note, { id: "b" });
    await tx.sql`create table if not exists mine (id bigint)`;
    await tx.sql`insert into mine (id) values (${1})`;
  });
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
}

test("two books in one database never wait for each other's locks", async (t) => {
  const url = await testUrl(t, "postgres");
  const [first, second] = [await openIn(t, url, "first"), await openIn(t, url, "second")];

  // Everything that the first could hold alone is held while the second does all it can.
  await roomsOf(first).store.write(async (tx) => {
    await closeListeners(tx);
    for (const seq of [1, 2, 3]) await closeLane(tx, seq);
    await lockNames(tx, ["default\nwork", "default\nname\nwork", "default\nrate\nname\nwork"]);
    await tx.all(sql`select pg_catalog.pg_advisory_xact_lock(${lockKeyOf("records:default")})`);
    await useAll(second);
  });

  assert.equal((await second.jobs.list({ name: "work", status: "completed" })).items.length, 2);
});

test("the keys of all advisory locks carry the book", async (t) => {
  const url = await testUrl(t, "postgres");
  const book = await openIn(t, url, "first");
  const held = await roomsOf(book).store.write(async (tx) => {
    await closeListeners(tx);
    await closeLane(tx, 1);
    return tx.all<{
      key: string;
    }>(sql`select (classid::bigint << 32 | objid::bigint)::text as key from pg_catalog.pg_locks
      where locktype = 'advisory' and pid = pg_catalog.pg_backend_pid() order by 1`);
  });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  const names = ["first:listeners", "first:enter\n1"];
  const { rows } = await client.query<{ key: string }>(
    "select hashtextextended(name, 0)::text as key from unnest($1::text[]) as name order by 1",
    [names],
  );

  assert.deepEqual(held, rows);
});

test("what a hostile role makes in public is never run by a book, nor taken for one of its tables", async (t) => {
  const url = await testUrl(t, "postgres");
  const owner = new pg.Client({ connectionString: url });
  await owner.connect();
  cleanup(t, () => owner.end());
  const role = `hostile_${process.pid}`;
  await owner.query(`create role ${role}; grant create, usage on schema public to ${role}; create table public.loot (what text);
    grant all on public.loot to public`);
  cleanup(t, () => owner.query(`reset role; drop owned by ${role}; drop role ${role}`));
  await owner.query(`set role ${role}`);
  const steal = (name: string, args: string, returns: string, value: string): string =>
    `create function public.${name}(${args}) returns ${returns} language plpgsql as
      $$ begin insert into public.loot values ('${name}'); ${returns === "void" ? "" : `return ${value};`} end $$`;
  // Each fits a call of the engine's as well as the server's own, or better.
  await owner.query(
    [
      steal("hashtextextended", "text, integer", "bigint", "1"),
      steal("pg_advisory_xact_lock", "integer", "void", "null"),
      steal("set_config", "text, text, integer", "text", "''"),
      steal("jsonb_array_elements_text", "text", "text", "''"),
      steal("pg_notify", "text, unknown", "void", "null").replace("unknown", "varchar"),
      steal("greatest_of", "bigint, integer", "bigint", "1"),
      steal("plus", "bigint, text", "bigint", "1"),
      "create operator public.+ (leftarg = bigint, rightarg = text, function = public.plus)",
      "create operator public.|| (leftarg = bigint, rightarg = text, function = public.plus)",
      "create table public.daybook_migration (number bigint, name text, hash text, applied_at bigint)",
      "create table public.daybook_job (id text); create table public.mine (id text)",
    ].join(";\n"),
  );
  await owner.query("reset role");

  const book = await openIn(t, url, "daybook");
  await useAll(book);
  const paths = await roomsOf(book).store.read<{ path: string }>(
    sql`select pg_catalog.current_setting('search_path') as path`,
  );

  assert.deepEqual(paths, [{ path: "daybook, pg_temp" }]);
  assert.deepEqual((await owner.query("select what from public.loot")).rows, []);
  assert.deepEqual(
    (await owner.query("select id from public.daybook_job union all select id from public.mine")).rows,
    [],
  );
  assert.deepEqual(await book.doctor(), []);
});

test("settings, locks, roles and tables of a session end with the transaction that made them", async (t) => {
  const { book } = await openTest(t, "postgres", { connections: 2 });
  const leave = async (tx: Pick<Parameters<Parameters<Book["read"]>[0]>[0], "sql">): Promise<void> => {
    await tx.sql`select set_config('daybook.left', 'here', false), set_config('lock_timeout', '1', false),
      set_config('search_path', 'public', false), pg_try_advisory_lock(4711)`;
  };
  await book.write(async (tx) => {
    await tx.sql`create temp table left_over (id text) on commit preserve rows`;
    await leave(tx);
  });
  await assert.rejects(
    book.write(async (tx) => {
      await leave(tx);
      throw new Error("undone");
    }),
    /undone/,
  );
  await book.read(leave);

  // Both connections are in use at once, so each is looked at.
  const met = Promise.withResolvers<void>();
  let here = 0;
  const look = (): Promise<unknown> =>
    book.write(async (tx) => {
      const [row] =
        await tx.sql`select current_setting('daybook.left', true) as setting, current_setting('lock_timeout') as patience,
        current_setting('search_path') as path, to_regclass('pg_temp.left_over')::text as temporary,
        (select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and pid = pg_backend_pid()) as locks`;
      if (++here >= 2) met.resolve();
      await met.promise;
      return row;
    });
  const clean = { patience: "5s", path: "daybook, pg_temp", temporary: null, locks: 0 };
  for (const found of await Promise.all([look(), look()])) {
    const { setting, ...rest } = found as { setting: string | null };
    assert.deepEqual([setting ?? "", rest], ["", clean]);
  }
});
