// book.join: Daybook's verbs in a transaction that the user began with pg.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import pg from "pg";
import { z } from "zod";
import { entity, event, job, listener, manualClock, type Book, type OpenOptions } from "../../src/index.ts";
import { kyselyOn } from "../../src/book/kysely.ts";
import { cleanup, openTest, testUrl } from "../support/open-test.ts";

const Order = entity("order", { schema: z.object({ id: z.string(), total: z.number() }), key: "id" });
const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
const pay = job("pay", { params: z.object({ orderId: z.string() }), run: ({ orderId }) => `paid ${orderId}` });

async function openShop(t: TestContext, options: OpenOptions = {}): Promise<{ book: Book; url: string }> {
  const opened = await openTest(t, "postgres", { use: [pay, Order, OrderPaid], ...options });
  const client = await connect(t, opened.url);
  await client.query("create table purchase (id text primary key)");
  return opened;
}

async function connect(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

async function purchases(client: pg.Client): Promise<unknown[]> {
  return (await client.query<{ id: string }>("select id from purchase order by id")).rows.map(({ id }) => id);
}

async function isWaiting(asking: pg.Client, client: pg.Client & { processID?: number }): Promise<boolean> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and pid = $1 and wait_event_type = 'Lock'`;
  return (await asking.query(waiting, [client.processID])).rows.length > 0;
}

const buy = (book: Book, client: pg.ClientBase, orderId: string) =>
  book.join(client, async (tx) => {
    await tx.records.put(Order, { id: orderId, total: 40 });
    await tx.events.publish(OrderPaid, { orderId });
    await tx.jobs.enqueue("pay", { orderId });
  });

describe("a transaction of the user's own on postgres", () => {
  for (const where of ["this process", "another process"]) {
    test(`own rows, a record, an event and a job are one commit, which wakes a worker of ${where}`, async (t) => {
      // All clocks stand still, so nothing but a wake makes a worker look again.
      const paid = Promise.withResolvers<string>();
      const pay = job("pay", { run: ({ orderId }: { orderId: string }) => paid.resolve(orderId) });
      const { book, url } = await openShop(t, {
        use: [pay, Order, OrderPaid],
        clock: manualClock(),
        waitClock: manualClock(),
      });
      const { book: other } = await openTest(t, "postgres", {
        url,
        use: [pay],
        clock: manualClock(),
        waitClock: manualClock(),
      });
      await (await (where === "this process" ? book : other).startWorker()).idle();
      const client = await connect(t, url);

      await client.query("begin");
      await client.query("insert into purchase (id) values ('o-17')");
      await buy(book, client, "o-17");
      const before = [(await book.jobs.list()).items, await book.records.find(Order, "o-17")];
      await client.query("insert into purchase (id) values ('o-18')");
      await client.query("commit");

      assert.deepEqual(before, [[], undefined]);
      assert.equal(await paid.promise, "o-17");
      assert.deepEqual(await purchases(client), ["o-17", "o-18"]);
      assert.deepEqual(await book.records.get(Order, "o-17"), { id: "o-17", total: 40 });
      assert.equal((await book.events.list()).items.length, 1);
      assert.deepEqual(await book.doctor(), []);
    });
  }

  test("a rollback undoes all of it", async (t) => {
    const { book, url } = await openShop(t, { worker: false });
    const client = await connect(t, url);

    await client.query("begin");
    await client.query("insert into purchase (id) values ('o-17')");
    await buy(book, client, "o-17");
    await client.query("rollback");

    assert.deepEqual(await purchases(client), []);
    assert.deepEqual((await book.jobs.list()).items, []);
    assert.deepEqual((await book.events.list()).items, []);
    assert.equal(await book.records.head(), null);
    // A later commit has the number that was not used, and no cache believes in what was undone.
    await client.query("begin");
    await buy(book, client, "o-18");
    await client.query("commit");
    assert.equal(await book.records.head(), 1);
    assert.deepEqual(await book.doctor(), []);
  });

  test("a function that fails undoes its own part only, and the transaction goes on", async (t) => {
    const { book, url } = await openShop(t, { worker: false });
    const client = await connect(t, url);

    await client.query("begin");
    await client.query("insert into purchase (id) values ('o-17')");
    await assert.rejects(
      book.join(client, async (tx) => {
        await tx.sql`insert into public.purchase (id) values ('o-18')`;
        await tx.jobs.enqueue(pay, { orderId: "o-18" });
        await assert.rejects(tx.sql`insert into public.purchase (id) values ('o-17')`, { code: "conflict" });
        await tx.jobs.enqueue(pay, { orderId: "o-19" });
        throw new Error("not today");
      }),
      /not today/,
    );
    await book.join(client, (tx) => tx.jobs.enqueue(pay, { orderId: "o-17" }));
    await client.query("commit");

    assert.deepEqual(await purchases(client), ["o-17"]);
    const { items } = await book.jobs.list();
    assert.deepEqual(await Promise.all(items.map(async ({ id }) => (await book.jobs.get(id)).params)), [
      { orderId: "o-17" },
    ]);
  });

  test("every verb of a transaction works, also through Kysely, and the client's own settings are left as they were", async (t) => {
    const { book, url } = await openShop(t, { worker: false, calls: { key: Buffer.alloc(32, 1).toString("base64") } });
    const client = await connect(t, url);
    const settings = "select current_setting('search_path') as path, current_setting('lock_timeout') as patience";
    await client.query("begin");
    const before = (await client.query(settings)).rows;

    await book.tenant("acme").join(client, async (tx) => {
      assert.equal(tx.tenant, "acme");
      await tx.jobs.enqueueMany(pay, [{ orderId: "a" }, { orderId: "b" }]);
      await tx.jobs.enqueue(pay, { orderId: "c" }, { key: "c", in: "1h" });
      await tx.groups.create({ mode: "parallel" }, (group) => group.add(pay, { orderId: "d" }));
      await tx.templates.create("again", { job: pay });
      await tx.queues.pause("default");
      await tx.schedules.create("nightly", { daily: "07:00", job: pay, params: { orderId: "e" } });
      await tx.calls.submit({ method: "POST", url: "https://stock.example/reserve", json: { orderId: "f" } });
      await tx.events.publish(OrderPaid, { orderId: "g" }, { key: "g" });
      await tx.records.put(Order, { id: "o-1", total: 1 });
      assert.deepEqual(await tx.records.get(Order, "o-1"), { id: "o-1", total: 1 });
      const [row] = await tx.sql<{ n: number }>`select count(*) as n from daybook_job`;
      assert.equal(row?.n, 5);
      await kyselyOn<{ "public.purchase": { id: string } }>(tx)
        .insertInto("public.purchase")
        .values({ id: "k" })
        .execute();
    });

    assert.deepEqual((await client.query(settings)).rows, before);
    assert.deepEqual((await client.query("select 1::bigint as n")).rows, [{ n: "1" }]);
    await client.query("commit");
    const acme = book.tenant("acme");
    assert.equal((await acme.jobs.list()).items.length, 4);
    assert.equal((await acme.calls.list()).items.length, 1);
    assert.equal((await acme.schedules.list()).items.length, 1);
    assert.deepEqual(await purchases(client), ["k"]);
    assert.deepEqual(await book.doctor(), []);
  });

  test("writers of records take turns, so none of them is lost at read committed", async (t) => {
    const { book, url } = await openShop(t, { worker: false });
    const [one, two] = [await connect(t, url), await connect(t, url)];
    const add = (client: pg.Client) =>
      book.join(client, async (tx) => {
        await tx.records.ensure(Order, { id: "first", total: 0 });
        const { total } = await tx.records.get(Order, "o-17");
        await tx.records.put(Order, { id: "o-17", total: total + 1 });
      });
    await book.records.put(Order, { id: "o-17", total: 0 });

    await Promise.all([one.query("begin"), two.query("begin")]);
    await add(one);
    const second = add(two);
    // It waits for the first one, whatever it has read by then.
    while (!(await isWaiting(one, two))) await one.query("select 1");
    await one.query("commit");
    await second;
    await two.query("commit");

    assert.deepEqual(await book.records.get(Order, "o-17"), { id: "o-17", total: 2 });
    assert.equal(await book.records.head(), 3);
  });

  test("a serializable transaction that lost says so, and is right when it is run again", async (t) => {
    const { book, url } = await openShop(t, { worker: false });
    const client = await connect(t, url);
    await book.records.put(Order, { id: "o-17", total: 1 });
    const attempt = async (meanwhile: () => Promise<unknown>): Promise<void> => {
      await client.query("begin isolation level serializable");
      await client.query("select count(*) from purchase");
      await meanwhile();
      await book.join(client, (tx) => tx.records.put(Order, { id: "o-17", total: 3 }));
      await client.query("commit");
    };

    await assert.rejects(
      attempt(() => book.records.put(Order, { id: "o-17", total: 2 })),
      { code: "busy" },
    );
    await client.query("rollback");
    await attempt(async () => undefined);

    assert.deepEqual(await book.records.get(Order, "o-17"), { id: "o-17", total: 3 });
  });

  test("a live listener hears what was published, once it is committed", async (t) => {
    const heard: string[] = [];
    const done = Promise.withResolvers<void>();
    const hear = listener("hear", {
      on: OrderPaid,
      live: true,
      run: ({ orderId }) => (heard.push(orderId) === 2 ? done.resolve() : undefined),
    });
    const { book, url } = await openShop(t, { use: [pay, Order, OrderPaid, hear] });
    const client = await connect(t, url);

    for (const [orderId, end] of [
      ["o-1", "commit"],
      ["o-2", "rollback"],
      ["o-3", "commit"],
    ] as const) {
      await client.query("begin");
      await book.join(client, (tx) => tx.events.publish(OrderPaid, { orderId }));
      await client.query(end);
    }
    await done.promise;

    assert.deepEqual(heard, ["o-1", "o-3"]);
  });

  test("a client is given one statement at a time, as its driver wants it", async (t) => {
    const { book, url } = await openShop(t, { worker: false });
    const client = await connect(t, url);
    let most = 0;
    let now = 0;
    const counting = {
      async query(config: pg.QueryConfig) {
        most = Math.max(most, ++now);
        return client.query(config).finally(() => now--);
      },
    };

    await client.query("begin");
    await book.join(counting, async (tx) => {
      await Promise.all([tx.jobs.enqueue(pay, { orderId: "a" }), tx.jobs.enqueue(pay, { orderId: "b" })]);
      await tx.records.put(Order, { id: "o-17", total: 1 });
    });
    await client.query("commit");

    assert.deepEqual([most, (await book.jobs.list()).items.length], [1, 2]);
  });

  test("a client that is fit for none of it is refused, and says what to do", async (t) => {
    const { book, url } = await openShop(t, { worker: false });
    const client = await connect(t, url);
    const pool = new pg.Pool({ connectionString: url });
    cleanup(t, () => pool.end());
    const elsewhere = await connect(t, await testUrl(t, "postgres"));
    const work = (): undefined => undefined;
    const within = async (begin: string, on: pg.ClientBase, run = work as () => unknown): Promise<unknown> => {
      await on.query(begin);
      try {
        return await book.join(on, run);
      } finally {
        await on.query("rollback");
      }
    };
    const fails = async (): Promise<unknown> => {
      await client.query("begin");
      await client.query("select 1 / 0").catch(() => undefined);
      try {
        return await book.join(client, work);
      } finally {
        await client.query("rollback");
      }
    };
    const refused: [() => Promise<unknown>, RegExp][] = [
      [() => book.join(client, work), /has ended: begin it before, commit it after/],
      [() => book.join(pool, work), /use a client of its own, not a pool/],
      [() => within("begin isolation level repeatable read", client), /is repeatable read: begin it read committed/],
      [() => within("begin read only", client), /may only read: begin it read write/],
      [() => within("begin", elsewhere), /is in another database, ".+": the book is in postgres:/],
      [fails, /has failed: roll it back/],
      [() => within("begin", client, () => client.query("commit")), /has ended: begin it before, commit it after/],
      [() => within("begin", client, () => book.join(client, work)), /book\.join was called inside book\.join/],
      [() => within("begin", client, () => book.jobs.list()), /book\.jobs\.list was called inside book\.join/],
      [() => book.write(() => book.join(client, work)), /book\.join was called inside book\.write/],
    ];

    for (const [run, message] of refused) await assert.rejects(run(), { code: "invalid", message });

    await client.query("begin");
    const late = await book.join(client, (tx) => ({ tx }));
    assert.throws(() => late.tx.jobs.enqueue(pay, { orderId: "o-17" }), /was used after its transaction ended/);
    const both = [book.join(client, (tx) => tx.sql`select pg_sleep(0)`), book.join(client, work)];
    await assert.rejects(Promise.all(both), /in another book\.join already/);
    await both[0];
    await client.query("rollback");
    assert.deepEqual((await book.jobs.list()).items, []);
  });
});

test("a book on SQLite has no transaction of pg to join, and says what to use", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });

  await assert.rejects(
    book.join(new pg.Client(), () => undefined),
    { code: "invalid", message: "book.join is for books on PostgreSQL, and this one is on SQLite: use book.write" },
  );
});
