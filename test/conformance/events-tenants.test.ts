import assert from "node:assert/strict";
import { test } from "node:test";
import { event, listener, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const Said = event<{ n: number }>("talk.said");
const names = async (book: Book): Promise<string[]> => (await book.listeners.list()).map(({ name }) => name);

for (const backend of backends) {
  test(`${backend}: a listener for all tenants is one of each tenant, and hears the first event of a tenant that comes later`, async (t) => {
    const heard: string[] = [];
    const audit = listener("audit", {
      on: Said,
      tenants: "all",
      from: "beginning",
      attempts: 1,
      run: ({ n }, { book: { tenantId } }) => {
        if (n === 0) throw new Error("no");
        heard.push(`${tenantId} ${n}`);
      },
    });
    const { book: before, url } = await openTest(t, backend, { worker: false });
    await before.tenant("acme").events.publish(Said, { n: 1 });

    const { book } = await openTest(t, backend, { url, use: [audit] });
    // This one has read which listeners there are, and learns of new tenants by itself.
    await before.events.publish(Said, { n: 2 });
    for (const who of [book, before])
      await who.tenant(`of-${who === book ? "us" : "them"}`).events.publish(Said, { n: 3 });
    await before.tenant("of-us").events.publish(Said, { n: 4 });
    await book.tenant("dead").events.publish(Said, { n: 0 });
    await book.tenant("held").events.publish("walk.on", null);
    await book.tenant("held").listeners.pause("audit");
    await book.tenant("held").events.publish(Said, { n: 5 });
    await (await book.startWorker()).idle();

    assert.deepEqual(heard.toSorted(), ["acme 1", "default 2", "of-them 3", "of-us 3", "of-us 4"]);
    assert.equal((await book.tenant("held").listeners.lag("audit")).events, 1);
    assert.equal((await book.tenant("dead").deadLetters.list()).items.length, 1);
    assert.equal((await book.deadLetters.list()).items.length, 0);
    assert.equal((await book.tenant("acme").listeners.get("audit")).forAllTenants, true);
    assert.deepEqual(await names(book.tenant("silent")), []);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a tenant's own listener of that name stays, and one that it removed is not made again`, async (t) => {
    const all = listener("audit", { on: Said, tenants: "all", run: () => undefined });
    const own = listener("audit", { on: "walk.>", queue: "own", run: () => undefined });
    const { url } = await openTest(t, backend, { tenant: "zeta", use: [own] });
    const { book } = await openTest(t, backend, { url, use: [all] });
    const [zeta, acme] = [book.tenant("zeta"), book.tenant("acme")];

    assert.equal((await zeta.events.publish(Said, { n: 1 })).deliveries, 0);
    assert.equal((await acme.events.publish(Said, { n: 1 })).deliveries, 1);
    await acme.listeners.remove("audit");
    assert.equal((await acme.events.publish(Said, { n: 2 })).deliveries, 0);
    assert.equal((await book.tenant("late").events.publish(Said, { n: 1 })).deliveries, 1);

    await assert.rejects(book.listeners.remove("audit", { tenants: "some" } as never), { code: "invalid" });
    await book.listeners.remove("audit", { tenants: "all" });
    assert.equal((await book.tenant("late").events.publish(Said, { n: 2 })).deliveries, 0);
    assert.equal((await book.tenant("later").events.publish(Said, { n: 1 })).deliveries, 0);
    assert.equal((await zeta.listeners.get("audit")).queue, "own");
  });

  test(`${backend}: a new tenant whose first publish is rolled back has no listener, and its next event is heard`, async (t) => {
    const all = listener("audit", { on: "talk.>", tenants: "all", run: () => undefined });
    const changed = listener("audit", { on: "walk.>", tenants: "all", attempts: 3, run: () => undefined });
    const { book, url } = await openTest(t, backend, { use: [all] });
    const acme = book.tenant("acme");

    const undone = acme.write(async (tx) => {
      await tx.events.publish(Said, { n: 1 });
      await tx.events.publish(Said, { n: 2 });
      throw new Error("no");
    });
    await assert.rejects(undone, /no/);
    assert.deepEqual(await names(acme), []);
    const both = await Promise.all([1, 2].map((n) => acme.write((tx) => tx.events.publish(Said, { n }))));
    assert.deepEqual(
      both.map(({ deliveries }) => deliveries),
      [1, 1],
    );

    // Another program has other settings of it: they are those of every tenant.
    await openTest(t, backend, { url, use: [changed] });
    assert.equal((await acme.events.publish("walk.on", null)).deliveries, 1);
    assert.equal((await book.tenant("late").events.publish("walk.on", null)).deliveries, 1);
    assert.equal((await book.tenant("late").events.publish(Said, { n: 1 })).deliveries, 0);
    assert.equal((await acme.listeners.get("audit")).attempts, 3);
    assert.deepEqual(await book.doctor(), []);
  });
}

test("for all tenants goes with positions that all of them have", () => {
  const wrong = { on: Said, tenants: "some", run: () => undefined } as never;
  assert.throws(() => listener("l", wrong), { code: "invalid", message: /is not "all"/ });
  const of = { on: Said, tenants: "all", from: { event: "e" }, run: () => undefined } as const;
  assert.throws(() => listener("l", of), { code: "invalid", message: /give a time/ });
});
