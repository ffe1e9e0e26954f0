import assert from "node:assert/strict";
import { test } from "node:test";
import { event, listener, manualClock, type Book, type ManualClock, type Worker } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const Said = event<{ n: number }>("talk.said");

type Scene = { book: Book; worker: Worker; clock: ManualClock; broken: Set<number>; heard: string[] };

/** A listener that fails for the numbers in `broken`, as often as it may, and one that hears of dead letters. */
async function openScene(
  t: Parameters<typeof openTest>[0],
  backend: Backend,
  options: { attempts?: number; ordered?: boolean } = {},
): Promise<Scene> {
  const clock = manualClock();
  const broken = new Set<number>();
  const heard: string[] = [];
  const fragile = listener("fragile", {
    on: Said,
    attempts: 2,
    backoff: [1000],
    ...options,
    run({ n }, { event: { key } }) {
      if (broken.has(n)) throw new RangeError(`cannot take ${n}`);
      heard.push(`${key ?? ""}${n}`);
    },
  });
  const { book } = await openTest(t, backend, { clock, use: [fragile] });
  const worker = await book.startWorker({ concurrency: 4 });
  return { book, worker, clock, broken, heard };
}

async function letTime({ clock, worker }: Scene, ms = 1000): Promise<void> {
  await worker.idle();
  await clock.advance(ms);
  await worker.idle();
}

const deadEvents = (book: Book): Promise<{ payload: string; chain_depth: number }[]> =>
  book.read(
    (tx) => tx.sql`select payload, chain_depth from daybook_event where topic = 'event.dead_letter' order by seq`,
  );

for (const backend of backends) {
  test(`${backend}: after the last attempt there is one dead letter and one event about it`, async (t) => {
    const scene = await openScene(t, backend);
    const { book, broken } = scene;
    broken.add(1);

    const { id } = await book.events.publish(Said, { n: 1 });
    await letTime(scene);

    const { items } = await book.deadLetters.list();
    assert.equal(items.length, 1);
    const [letter] = items;
    assert.deepEqual(
      [letter?.eventId, letter?.listener, letter?.attempts, letter?.error, letter?.status],
      [id, "fragile", 2, { type: "RangeError", message: "cannot take 1" }, "dead"],
    );
    const told = await deadEvents(book);
    assert.deepEqual(
      told.map(({ payload, chain_depth }) => [JSON.parse(payload) as unknown, Number(chain_depth)]),
      [
        [
          {
            attempts: 2,
            deadLetterId: letter?.id,
            eventId: id,
            listener: "fragile",
            topic: "talk.said",
            error: { message: "cannot take 1", type: "RangeError" },
          },
          1,
        ],
      ],
    );
    assert.deepEqual((await book.tenant("acme").deadLetters.list()).items, []);
    await assert.rejects(book.tenant("acme").deadLetters.redrive(letter?.id ?? ""), /there is no dead letter/);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a redrive that fails updates its letter, and one that succeeds ends it`, async (t) => {
    const scene = await openScene(t, backend, { attempts: 1 });
    const { book, broken, worker, heard } = scene;
    broken.add(1);
    await book.events.publish(Said, { n: 1 });
    await worker.idle();
    const [letter] = (await book.deadLetters.list()).items;
    const id = letter?.id ?? "";

    await book.deadLetters.redrive(id);
    await worker.idle();
    const again = await book.deadLetters.get(id);
    assert.deepEqual([again.status, again.redrives, again.attempts], ["dead", 1, 2]);
    assert.equal((await deadEvents(book)).length, 1);

    broken.clear();
    const redriven = await book.deadLetters.redrive(id);
    await worker.idle();

    assert.equal((await book.deadLetters.get(id)).status, "recovered");
    assert.equal((await book.jobs.get(redriven.jobId)).status, "completed");
    assert.deepEqual(heard, ["1"]);
    await assert.rejects(book.deadLetters.redrive(id), /is recovered and cannot be redriven/);
    await assert.rejects(book.deadLetters.discard(id, "late"), /is recovered and cannot be discarded/);
  });

  test(`${backend}: letters are redriven and discarded by group, after a dry run, at a rate`, async (t) => {
    const scene = await openScene(t, backend, { attempts: 1 });
    const { book, broken, worker, heard, clock } = scene;
    for (const n of [1, 2, 3, 4]) broken.add(n);
    for (const n of [1, 2, 3, 4]) await book.events.publish(Said, { n });
    await worker.idle();
    assert.deepEqual(
      new Set((await book.deadLetters.groups()).map(({ error, count }) => `${error.message}: ${count}`)),
      new Set([1, 2, 3, 4].map((n) => `cannot take ${n}: 1`)),
    );
    const type = { type: "RangeError" };

    const dry = await book.deadLetters.redriveAll({ error: type }, { dryRun: true });
    const gone = await book.deadLetters.discardAll({ error: { ...type, message: "cannot take 4" } }, "wrong number");
    broken.clear();
    const done = await book.deadLetters.redriveAll({ listener: "fragile", error: type }, { rate: 2 });
    await worker.idle();
    const first = heard.length;
    await clock.advance(1000);
    await worker.idle();

    assert.deepEqual([dry, gone, done, first], [{ count: 4 }, { count: 1 }, { count: 3 }, 1]);
    assert.deepEqual(new Set(heard), new Set(["1", "2", "3"]));
    const [discarded] = (await book.deadLetters.list({ status: "discarded" })).items;
    assert.equal(discarded?.reason, "wrong number");
    await assert.rejects(book.deadLetters.discard(discarded?.id ?? "", " "), /say why/);
  });

  test(`${backend}: a dead letter about a dead letter publishes no further event`, async (t) => {
    const clock = manualClock();
    const fail = (): never => {
      throw new Error("always");
    };
    const use = [
      listener("bad", { on: Said, attempts: 1, run: fail }),
      listener("worse", { on: "event.dead_letter", attempts: 1, run: fail }),
      listener("worst", { on: ">", attempts: 1, run: fail }),
    ];
    const { book } = await openTest(t, backend, { clock, use });
    const worker = await book.startWorker();

    await book.events.publish(Said, { n: 1 });
    await worker.idle();

    // Two letters about what was said are told; each is heard by two who fail, and that is not told.
    assert.equal((await deadEvents(book)).length, 2);
    assert.equal((await book.deadLetters.list()).items.length, 6);
  });

  test(`${backend}: a dead letter keeps its job and its event until it is discarded`, async (t) => {
    const scene = await openScene(t, backend, { attempts: 1 });
    const { book, broken, worker, clock } = scene;
    broken.add(1);
    await book.events.publish(Said, { n: 1 });
    await worker.idle();
    const [letter] = (await book.deadLetters.list()).items;
    await book.events.publish(Said, { n: 2 });
    await worker.idle();
    await clock.advance(1000);

    const before = await book.retain({ jobs: 1, apply: true });
    await book.deadLetters.discard(letter?.id ?? "", "known");
    const after = await book.retain({ jobs: 1, apply: true });

    assert.deepEqual([before.jobs, after.jobs], [1, 1]);
  });

  test(`${backend}: an ordered listener keeps the order of each key, across retries and dead letters`, async (t) => {
    const scene = await openScene(t, backend, { ordered: true });
    const { book, broken, heard, worker } = scene;
    broken.add(1);
    for (const n of [1, 2, 3]) {
      await book.events.publish(Said, { n }, { key: "a" });
      await book.events.publish(Said, { n: n * 10 }, { key: "b" });
    }
    await worker.idle();
    assert.deepEqual(heard, ["b10", "b20", "b30"]);

    await letTime(scene);
    assert.deepEqual(heard, ["b10", "b20", "b30"]);
    const waiting = (await book.jobs.list({ kind: "delivery", status: "waiting" })).items;
    assert.deepEqual(
      waiting.map(({ waitsFor }) => waitsFor),
      ["order", "order"],
    );
    const reasons = await Promise.all(waiting.map(async ({ id }) => (await book.jobs.explain(id)).because[0]));
    assert.ok(reasons.some((why) => why?.includes("a dead letter stands before it")));
    const [letter] = (await book.deadLetters.list()).items;
    await book.deadLetters.redrive(letter?.id ?? "");
    await worker.idle();
    assert.deepEqual(heard, ["b10", "b20", "b30"]);

    broken.clear();
    await book.deadLetters.redrive(letter?.id ?? "");
    await worker.idle();

    assert.deepEqual(heard, ["b10", "b20", "b30", "a1", "a2", "a3"]);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a discarded letter or a cancelled delivery releases the next of its key`, async (t) => {
    const scene = await openScene(t, backend, { ordered: true, attempts: 1 });
    const { book, broken, heard, worker } = scene;
    broken.add(1);
    for (const n of [1, 2, 3]) await book.events.publish(Said, { n }, { key: "a" });
    await worker.idle();
    assert.equal((await book.jobs.list({ kind: "delivery", status: "waiting" })).items.length, 2);

    const oldest = await book.read(
      (tx) => tx.sql<{ id: string }>`select id from daybook_job_now where status = 'waiting' order by kind_seq limit 1`,
    );
    await book.jobs.cancel(oldest[0]?.id ?? "");
    await worker.idle();
    assert.deepEqual(heard, []);
    const [letter] = (await book.deadLetters.list()).items;
    await book.deadLetters.discard(letter?.id ?? "", "not ours");
    await worker.idle();

    assert.deepEqual(heard, ["a3"]);
  });

  test(`${backend}: finish keeps the order of its key`, async (t) => {
    const heard: number[] = [];
    const polite = listener("polite", {
      on: Said,
      ordered: true,
      run: ({ n }, { finish }) => finish(() => void heard.push(n)),
    });
    const { book } = await openTest(t, backend, { use: [polite] });
    const worker = await book.startWorker({ concurrency: 8 });

    for (let n = 0; n < 20; n++) await book.events.publish(Said, { n }, { key: "k" });
    await worker.idle();

    assert.deepEqual(
      [...new Set(heard)],
      Array.from({ length: 20 }, (_, n) => n),
    );
  });
}
