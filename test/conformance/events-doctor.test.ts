import assert from "node:assert/strict";
import { test } from "node:test";
import { event, listener } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";

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

    const other = "default\nother";
    await tamper(book, async (tx) => {
      const delivery = (id: string): Promise<unknown[]> =>
        tx.sql`select seq from daybook_job_now where kind = 'delivery' and kind_seq = (select seq from daybook_event where id = ${id})`;
      const [first] = (await delivery("e1")) as { seq: number }[];
      await tx.sql`update daybook_job set kind = null where seq = ${first?.seq ?? 0}`;
      await tx.sql`update daybook_event set root_event_id = 'elsewhere' where topic = 'talk.heard' and payload = '{"n":2}'`;
      await tx.sql`delete from daybook_dead_letter where event_seq = (select seq from daybook_event where id = 'e10')`;
      await tx.sql`delete from daybook_job_pin where job_seq in (select job.seq from daybook_job job join daybook_event event
        on event.seq = job.kind_seq where event.id = 'e11')`;
      await tx.sql`delete from daybook_event where id = 'e20'`;
      await tx.sql`update daybook_job set kind_seq = -1 where kind = 'delivery' and kind_seq not in (select seq from daybook_event)`;
      await tx.sql`update daybook_line set kind_seq = -1 where kind = 'delivery' and kind_seq not in (select seq from daybook_event)`;
      await tx.sql`update daybook_job set limit_key = 'other' where kind_seq = (select seq from daybook_event where id = 'e21')`;
      await tx.sql`update daybook_line set order_key = ${other}, status = 'waiting', waits_for = 'order', waits_key = ${other}
        where kind_seq = (select seq from daybook_event where id = 'e21')`;
    });

    const found = await book.doctor();

    assert.deepEqual(
      new Set(found.map(({ promise, name }) => `${promise} ${name}`)),
      new Set([
        "E1 a delivery that has not ended has its event",
        "E1 an event that was published to listeners has their deliveries, unless these left by retention",
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

    await tamper(book, async (tx) => {
      await tx.sql`update daybook_dead_letter set order_key = (select limit_key from daybook_job_now where status = 'running')`;
      // A run is never rewritten, so another takes the place of the one that failed.
      const [run] = await tx.sql<{ seq: number; job_seq: number }>`select seq, job_seq from daybook_run`;
      await tx.sql`delete from daybook_run`;
      await tx.sql`insert into daybook_run (seq, tenant_id, id, kind, name, job_seq, session_seq, attempt, started_at, ended_at,
          duration_ms, status)
        select ${run?.seq ?? 0}, tenant_id, 'done', kind, name, seq, 1, 1, created_at, created_at, 1, 'success'
        from daybook_job where seq = ${run?.job_seq ?? 0}`;
    });
    const found = await book.doctor();
    gate.resolve();

    assert.deepEqual(
      found.map(({ promise, name }) => `${promise} ${name}`),
      ["E1 a delivery is not both done and dead", "E7 of an ordered key only the oldest delivery runs"],
    );
  });
}
