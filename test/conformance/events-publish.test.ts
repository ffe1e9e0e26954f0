import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { event, isDaybookError, job, limits, listener, manualClock, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });

type Row = {
  id: string;
  topic: string;
  payload: string;
  tenant_id: string;
  chain_depth: number;
  root_event_id: string;
};

function stored(book: Book): Promise<Row[]> {
  return book.read(
    (tx) =>
      tx.sql<Row>`select id, topic, payload, tenant_id, chain_depth, root_event_id from daybook_event order by seq`,
  );
}

for (const backend of backends) {
  test(`${backend}: an event is published with its transaction, or not at all`, async (t) => {
    const { book } = await openTest(t, backend, { use: [OrderPaid] });

    await book.write((tx) => tx.events.publish(OrderPaid, { orderId: "o-17" }));
    const undone = book.write(async (tx) => {
      await tx.events.publish(OrderPaid, { orderId: "o-18" });
      throw new Error("no");
    });

    await assert.rejects(undone, /no/);
    const rows = await stored(book);
    assert.deepEqual(
      rows.map(({ topic, payload, chain_depth }) => [topic, payload, chain_depth]),
      [["order.paid", '{"orderId":"o-17"}', 0]],
    );
    assert.equal(rows[0]?.root_event_id, rows[0]?.id);
  });

  test(`${backend}: a repeated id is one event, and each tenant has its own`, async (t) => {
    const { book } = await openTest(t, backend);
    const acme = book.tenant("acme");

    const first = await book.events.publish("a.b", { n: 1 }, { id: "mine" });
    const again = await book.events.publish("a.b", { n: 1 }, { id: "mine" });
    const other = await acme.events.publish("a.b", { n: 3 }, { id: "mine" });

    assert.deepEqual([first.created, again.created, other.created], [true, false, true]);
    assert.deepEqual(
      (await stored(book)).map(({ tenant_id, payload }) => [tenant_id, payload]),
      [
        ["default", '{"n":1}'],
        ["acme", '{"n":3}'],
      ],
    );
  });

  test(`${backend}: a dedupe key counts for its window`, async (t) => {
    const clock = manualClock();
    const { book } = await openTest(t, backend, { clock });
    const say = (): Promise<{ created: boolean; id: string }> =>
      book.events.publish("a.b", null, { dedupeKey: "k", dedupeWindow: "1s" });

    const first = await say();
    const second = await say();
    await clock.advance(1000);
    const third = await say();

    assert.deepEqual([first.created, second.created, third.created], [true, false, true]);
    assert.equal(second.id, first.id);
  });

  test(`${backend}: an invalid publish is refused with the reason`, async (t) => {
    const { book } = await openTest(t, backend, { use: [OrderPaid] });
    const refused: [() => Promise<unknown>, RegExp][] = [
      [() => book.events.publish("", null), /topic "" is empty/],
      [() => book.events.publish(null as never, null), /event is null: give an event, or a topic/],
      [() => book.events.publish("a..b", null), /empty segment/],
      [() => book.events.publish("a.*", null), /for patterns/],
      [() => book.events.publish("x".repeat(10_240), null), /10240 bytes long/],
      [() => book.events.publish("order.paid", { orderId: 7 }), /does not fit its schema: orderId/],
      [() => book.events.publish("a", { big: "x".repeat(limits.jsonBytesMax) }), /payload is .* over the limit/],
      [() => book.events.publish("a", null, { priority: 5000 }), /priority 5000/],
      [() => book.events.publish("a", null, { at: 1, in: 1 }), /"at" or "in"/],
      [() => book.events.publish("a", null, { dedupeWindow: 1 }), /"dedupeKey", which is missing/],
      [() => book.events.publish("a", null, { headers: { x: 1 as never } }), /header "x" is 1/],
      [() => book.events.publish("a", null, { prioritty: 1 } as never), /priority/],
    ];

    for (const [publish, why] of refused) await assert.rejects(publish, why);

    assert.deepEqual(await stored(book), []);
    await book.events.publish("__proto__.constructor", { __proto__: null, a: 1 });
    assert.equal((await stored(book)).length, 1);
  });

  test(`${backend}: a schema that throws fails the publish, and nothing else`, async (t) => {
    const schema = z.string().refine(() => {
      throw new Error("broken schema");
    });
    const { book } = await openTest(t, backend);

    await assert.rejects(book.events.publish(event("a.b", { schema }), "x"), /broken schema/);

    assert.deepEqual(await stored(book), []);
  });

  test(`${backend}: what a listener publishes continues its event's chain, also through jobs, up to the limit`, async (t) => {
    const errors: unknown[] = [];
    const echo = job("echo", {
      run: async (_params: unknown, { book }) => void (await book.events.publish("echo.said", null)),
    });
    const circle = listener("circle", {
      on: ["ping.*", "echo.said"],
      attempts: 1,
      async run(_payload, { book, event: heard }) {
        if (heard.chainDepth % 2 === 0) return void (await book.jobs.enqueue(echo, null));
        try {
          await book.events.publish("ping.back", null);
        } catch (error) {
          errors.push(error);
        }
      },
    });
    const { book } = await openTest(t, backend, { use: [echo, circle] });
    const worker = await book.startWorker();

    await book.events.publish("ping.start", null);
    await worker.idle();

    const rows = await stored(book);
    const depths = rows.filter(({ topic }) => topic !== "event.dead_letter").map((row) => row.chain_depth);
    assert.deepEqual(
      depths,
      Array.from({ length: limits.chainDepthMax + 1 }, (_, depth) => depth),
    );
    assert.deepEqual(new Set(rows.map((row) => row.root_event_id)).size, 1);
    const [failed] = (await book.jobs.list({ name: "echo" })).items;
    assert.equal(failed?.status, "waiting");
    assert.equal(errors.every(isDaybookError), true);
  });
}
