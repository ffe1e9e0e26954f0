import assert from "node:assert/strict";
import { test } from "node:test";
import { event, listener } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const Said = event<{ n: number }>("talk.said");

for (const backend of backends) {
  test(`${backend}: doctor finds what was broken by hand in events, deliveries and dead letters`, async (t) => {
    const use = [
      listener("l", {
        on: Said,
        attempts: 1,
        ordered: true,
        async run({ n }, { book }) {
          if (n >= 10) throw new Error("no");
          await book.events.publish("talk.heard", { n });
        },
      }),
    ];
    const { book } = await openTest(t, backend, { use, durability: "normal" });
    const worker = await book.startWorker();
    for (const n of [1, 2, 10, 11]) await book.events.publish(Said, { n }, { id: `e${n}` });
    await worker.idle();
    await worker.stop();
    for (const n of [20, 21]) await book.events.publish(Said, { n }, { id: `e${n}`, key: "k" });
    assert.deepEqual(await book.doctor(), []);

    await book.write(async (tx) => {
      const delivery = (id: string): Promise<unknown[]> =>
        tx.sql`select seq from job where kind = 'delivery' and kind_seq = (select seq from event where id = ${id})`;
      const [first] = (await delivery("e1")) as { seq: number }[];
      await tx.sql`update job set kind = null where seq = ${first?.seq ?? 0}`;
      await tx.sql`update event set root_event_id = 'elsewhere' where topic = 'talk.heard' and payload = '{"n":2}'`;
      await tx.sql`delete from dead_letter where event_seq = (select seq from event where id = 'e10')`;
      await tx.sql`update job set pinned = 0 where kind_seq = (select seq from event where id = 'e11')`;
      await tx.sql`delete from event where id = 'e20'`;
      await tx.sql`update job set kind_seq = -1 where kind = 'delivery' and kind_seq not in (select seq from event)`;
      await tx.sql`update job set limit_key = 'other', status = 'waiting', waits_for = 'order', waits_key = 'other'
        where kind_seq = (select seq from event where id = 'e21')`;
    });

    const found = await book.doctor();

    assert.deepEqual(
      new Set(found.map(({ promise, name }) => `${promise} ${name}`)),
      new Set([
        "E1 a delivery that has not ended has its event",
        "E1 an event that was published to listeners has their deliveries, unless these were pruned",
        "E2 a delivery whose last try failed has its dead letter",
        "E2 a dead letter that has not ended keeps its job",
        "E5 an event is one deeper than the one that caused it, and within the limit",
        "E7 a delivery that waits for its turn has one before it",
      ]),
    );
  });

  test(`${backend}: doctor finds a delivery that runs before an older one of its key, and one that is done and dead`, async (t) => {
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const l = listener("l", {
      on: Said,
      attempts: 1,
      ordered: true,
      run({ n }) {
        if (n === 1) throw new Error("no");
        started.resolve();
        return gate.promise;
      },
    });
    const { book } = await openTest(t, backend, { use: [l], durability: "normal" });
    const worker = await book.startWorker();
    await book.events.publish(Said, { n: 1 }, { key: "a", id: "dead" });
    await worker.idle();
    await book.events.publish(Said, { n: 2 }, { key: "b" });
    await started.promise;

    await book.write(async (tx) => {
      await tx.sql`update dead_letter set order_key = (select limit_key from job where status = 'running')`;
      await tx.sql`update run set status = 'success' where job_id = (select job_id from dead_letter)`;
      await tx.sql`update job set status = 'completed' where id = (select job_id from dead_letter)`;
    });
    const found = await book.doctor();
    gate.resolve();

    assert.deepEqual(
      found.map(({ promise, name }) => `${promise} ${name}`),
      ["E1 a delivery is not both done and dead", "E7 of an ordered key only the oldest delivery runs"],
    );
  });
}
