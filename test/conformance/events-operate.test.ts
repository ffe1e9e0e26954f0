import assert from "node:assert/strict";
import { test } from "node:test";
import { event, job, listener, manualClock, schedule } from "../../src/index.ts";
import type { Book, EventTree, JobEndedPayload } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const Said = event<{ n: number }>("talk.said");

const statuses = async (book: Book): Promise<string[]> =>
  (await book.events.list()).items.toReversed().map(({ status }) => status);

for (const backend of backends) {
  test(`${backend}: an event shows its delivery to each listener, and one status for all`, async (t) => {
    const clock = manualClock();
    const gate = Promise.withResolvers<void>();
    const use = [
      listener("good", { on: "talk.*", run: () => undefined }),
      listener("bad", {
        on: "talk.broken",
        attempts: 1,
        run: () => {
          throw new Error("no");
        },
      }),
      listener("slow", { on: "talk.slow", run: () => gate.promise }),
    ];
    const { book } = await openTest(t, backend, { clock, use });
    const worker = await book.startWorker({ concurrency: 4 });
    await book.events.publish("walk.on", null);
    await book.events.publish("talk.said", null);
    const broken = await book.events.publish("talk.broken", { x: 1 }, { headers: { trace: "t-1" }, key: "k" });
    await book.events.publish("talk.later", null, { in: "1h" });
    await worker.idle();
    const slow = await book.events.publish("talk.slow", null);
    while ((await book.events.get(slow.id)).status !== "claimed") await clock.nextTurn();

    assert.deepEqual(await statuses(book), ["unheard", "acked", "dead_lettered", "pending", "unheard", "claimed"]);
    const seen = await book.events.get(broken.id);
    assert.deepEqual(
      seen.deliveries.map(({ listener: name, status, error }) => [name, status, error?.message ?? null]),
      [
        ["bad", "dead_lettered", "no"],
        ["good", "acked", null],
      ],
    );
    assert.deepEqual([seen.payload, seen.headers, seen.key], [{ x: 1 }, { trace: "t-1" }, "k"]);
    gate.resolve();
    await worker.idle();
    await book.deadLetters.discard(seen.deliveries[0]?.deadLetterId ?? "", "known");
    assert.equal((await book.events.get(broken.id)).status, "acked");
    const page = await book.events.list({ topic: "talk.*", limit: 2 });
    assert.equal(
      page.items.length + (await book.events.list({ topic: "talk.*", after: page.next ?? "" })).items.length,
      4,
    );
    await assert.rejects(book.tenant("acme").events.get(broken.id), /there is no event/);
  });

  test(`${backend}: a delivery whose params an operator made no object says what deliveries are made by`, async (t) => {
    const hear = listener("hear", { on: Said, attempts: 1, run: () => undefined });
    const { book, url } = await openTest(t, backend, { use: [hear] });
    const said = await book.events.publish(Said, { n: 1 });
    const { book: operator } = await openTest(t, backend, { url, worker: false });
    const [delivery] = (await operator.events.get(said.id)).deliveries;
    await operator.jobs.edit(delivery?.jobId ?? "", "x");
    const worker = await book.startWorker();
    await worker.idle();
    const [failed] = (await operator.events.get(said.id)).deliveries;
    assert.match(failed?.error?.message ?? "", /deliveries to listener "hear" are made by publishing/);
  });

  test(`${backend}: the tree of what an event caused`, async (t) => {
    const forward = listener("forward", {
      on: "a.start",
      run: (_payload, { finish }) =>
        finish(async (tx) => {
          await tx.events.publish("a.left", null);
          await tx.events.publish("a.right", null);
        }),
    });
    const further = listener("further", {
      on: "a.left",
      run: async (_payload, { book }) => void (await book.events.publish("a.leaf", null)),
    });
    const { book } = await openTest(t, backend, { use: [forward, further] });
    const worker = await book.startWorker();
    await book.events.publish("a.start", null);
    await worker.idle();

    const [leaf] = (await book.events.list({ topic: "a.leaf" })).items;
    const tree = await book.events.lineage(leaf?.id ?? "");

    const shape = ({ topic, chainDepth, caused }: EventTree): unknown => [topic, chainDepth, caused.map(shape)];
    assert.deepEqual(shape(tree), [
      "a.start",
      0,
      [
        ["a.left", 1, [["a.leaf", 2, []]]],
        ["a.right", 1, []],
      ],
    ]);
    assert.notEqual(leaf?.causeRunId, null);
  });

  test(`${backend}: a replay is a new event with its own root, for all or for one listener`, async (t) => {
    const clock = manualClock();
    const heard: string[] = [];
    const use = ["one", "two"].map((name) =>
      listener(name, {
        on: Said,
        run: ({ n }, { event: { replayOf } }) => void heard.push(`${name}${n}${replayOf === null ? "" : "r"}`),
      }),
    );
    const { book } = await openTest(t, backend, { clock, use });
    const worker = await book.startWorker();
    const first = await book.events.publish(Said, { n: 1 });
    await clock.advance(1000);
    await book.events.publish(Said, { n: 2 });
    await worker.idle();

    const dry = await book.events.replay({ topic: "talk.*", since: clock.now() }, { dryRun: true });
    const [again] = (await book.events.replay(first.id)).events;
    await book.events.replay({ topic: "talk.*", since: clock.now(), until: clock.now() + 1 }, { listener: "two" });
    await worker.idle();

    assert.equal(dry.count, 1);
    const replayed = await book.events.get(again?.id ?? "");
    assert.deepEqual([replayed.replayOf, replayed.rootEventId, replayed.chainDepth], [first.id, replayed.id, 0]);
    assert.deepEqual(
      heard.slice(0, 4).toSorted((a, b) => a.localeCompare(b)),
      ["one1", "one2", "two1", "two2"],
    );
    assert.deepEqual(new Set(heard.slice(4)), new Set(["one1r", "two1r", "two2r"]));
    await assert.rejects(book.events.replay("gone"), /there is no event gone/);
    await assert.rejects(book.events.replay(first.id, { listener: "gone" }), /there is no listener "gone"/);
  });

  test(`${backend}: retention keeps events that are not finished, and says what keeps them`, async (t) => {
    const clock = manualClock();
    const broken = { yes: true };
    const use = [
      listener("picky", {
        on: Said,
        attempts: 1,
        run: ({ n }) => {
          if (n === 2 && broken.yes) throw new Error("no");
        },
      }),
    ];
    const { book } = await openTest(t, backend, { clock, use });
    const acme = book.tenant("acme");
    const worker = await book.startWorker();
    for (const n of [1, 2, 3]) await book.events.publish(Said, { n });
    await book.events.publish(Said, { n: 4 }, { in: "20s" });
    await acme.events.publish(Said, { n: 5 });
    await worker.idle();
    await clock.advance(10_000);
    await book.events.publish(Said, { n: 6 });

    const dry = await book.retain({ events: "5s" });
    const done = await book.retain({ events: "5s", apply: true });

    const kept = { unfinished: 1, deadLettered: 1, unheard: 0 };
    assert.deepEqual([dry.events, dry.kept, done.events, done.kept], [3, kept, 3, kept]);
    assert.deepEqual(
      (await book.events.list()).items.map(({ payload }) => (payload as { n: number }).n),
      [6, 4, 2],
    );
    assert.equal((await acme.events.list()).items.length, 1);
    const [letter] = (await book.deadLetters.list()).items;
    broken.yes = false;
    await book.deadLetters.redrive(letter?.id ?? "");
    await clock.advance(10_000);
    await worker.idle();
    assert.equal((await book.retain({ events: "5s", apply: true })).events, 2);
    // The last number stays taken, so that a new event is never confused with an old one.
    await clock.advance(10_000);
    assert.equal((await book.retain({ events: "5s", apply: true })).events, 0);
    const last = await book.events.publish(Said, { n: 7 });
    assert.equal(last.deliveries, 1);
    await worker.idle();
    assert.equal((await book.events.get(last.id)).status, "acked");
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a listener can be paused, resumed, skipped, rewound and removed, and shows its lag`, async (t) => {
    const clock = manualClock();
    const heard: number[] = [];
    const l = listener("l", { on: Said, run: ({ n }) => void heard.push(n) });
    const { book } = await openTest(t, backend, { clock, use: [l] });
    const worker = await book.startWorker();
    const { id } = await book.events.publish(Said, { n: 1 });
    await worker.idle();

    await book.listeners.pause("l", "moving house");
    for (const n of [2, 3]) await book.events.publish(Said, { n });
    await clock.advance(5000);
    await worker.idle();
    const paused = await book.listeners.get("l");
    assert.deepEqual(
      [heard, paused.lag, paused.paused?.note, paused.hosted],
      [[1], { events: 2, seconds: 5 }, "moving house", true],
    );

    await book.listeners.resume("l");
    await worker.idle();
    assert.deepEqual(heard, [1, 2, 3]);
    assert.deepEqual(await book.listeners.lag("l"), { events: 0, seconds: 0 });

    await book.listeners.pause("l");
    await book.events.publish(Said, { n: 4 });
    assert.deepEqual(await book.listeners.skip("l"), { skipped: 1 });
    await book.listeners.resume("l");
    await worker.idle();
    assert.deepEqual(heard, [1, 2, 3]);

    await book.listeners.rewind("l", { event: id });
    await worker.idle();
    assert.deepEqual(
      heard.toSorted((a, b) => a - b),
      [1, 1, 2, 2, 3, 3, 4],
    );
    assert.equal((await book.listeners.get("l")).state, "live");

    await book.listeners.remove("l");
    assert.equal((await book.events.publish(Said, { n: 5 })).deliveries, 0);
    assert.deepEqual(await book.listeners.list(), []);
    await assert.rejects(book.listeners.pause("l"), /there is no listener "l"/);
    await assert.rejects(book.tenant("acme").listeners.rewind("l", "beginning"), /there is no listener/);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a delivery that fails after its listener was removed is not tried again`, async (t) => {
    const clock = manualClock();
    const gate = Promise.withResolvers<void>();
    const l = listener("l", { on: Said, ordered: true, backoff: ["1s"], run: () => gate.promise });
    const { book } = await openTest(t, backend, { clock, use: [l] });
    const worker = await book.startWorker();
    const { id } = await book.events.publish(Said, { n: 1 }, { key: "k" });
    const next = await book.events.publish(Said, { n: 2 }, { key: "k" });
    while ((await book.events.get(id)).status !== "claimed") await clock.nextTurn();

    assert.deepEqual(await book.listeners.remove("l"), { cancelled: 1 });
    assert.equal((await book.events.get(id)).status, "claimed", "what runs goes on");
    gate.reject(new Error("no"));
    await worker.idle();

    for (const each of [id, next.id]) {
      const { status, deliveries } = await book.events.get(each);
      assert.deepEqual([status, deliveries.map((one) => one.status)], ["acked", ["skipped"]]);
    }
    assert.deepEqual((await book.jobs.list({ status: ["waiting", "queued", "running"] })).items, []);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a fact of the engine is published only when a listener hears it`, async (t) => {
    const clock = manualClock();
    const heard: string[] = [];
    const work = job("work", {
      attempts: 2,
      backoff: ["1s"],
      run: ({ fails }: { fails: boolean }) => {
        // What the databases cannot keep in a text must not keep a job from ending.
        if (fails) throw new RangeError("no \0");
      },
    });
    const use = [
      listener("watch", {
        on: [event<JobEndedPayload>("job.failed"), event<JobEndedPayload>("job.cancelled")],
        run: ({ name, attempt, run, retriedBy }, { event: { topic } }) => {
          const why = run?.error == null ? "" : ` ${run.error.type}: ${run.error.message}`;
          heard.push(`${topic} ${name} ${attempt} ${retriedBy === null ? "over" : "again"}${why}`);
        },
      }),
    ];
    const { book } = await openTest(t, backend, { clock, use: [work, ...use] });
    const worker = await book.startWorker();

    await book.jobs.enqueue(work, { fails: false });
    await book.jobs.enqueue(work, { fails: true });
    const { id } = await book.jobs.enqueue(work, { fails: false }, { in: "1h" });
    await book.jobs.cancel(id);
    await book.tenant("acme").jobs.enqueue(work, { fails: true }, { attempts: 1 });
    await worker.idle();
    await clock.advance(1000);
    await worker.idle();

    assert.deepEqual(
      new Set(heard),
      new Set([
        "job.cancelled work 1 over",
        "job.failed work 1 again RangeError: no \uFFFD",
        "job.failed work 2 over RangeError: no \uFFFD",
      ]),
    );
    assert.equal((await book.events.list()).items.length, 3);
    assert.equal((await book.tenant("acme").events.list()).items.length, 0);
  });

  test(`${backend}: a skipped slot is published to its listeners`, async (t) => {
    const clock = manualClock();
    const heard: [string, unknown][] = [];
    const gate = Promise.withResolvers<void>();
    const slow = job("slow", { run: () => gate.promise });
    const watch = listener("watch", {
      on: ["schedule.*", "session.*"],
      run: (payload, { event: { topic } }) => void heard.push([topic, payload]),
    });
    const { book } = await openTest(t, backend, {
      clock,
      use: [slow, watch, schedule("often", { every: "1s", job: slow, params: {} })],
    });
    const worker = await book.startWorker({ concurrency: 4 });

    // A slot at a time: a clock that runs ahead of the book would make of the second slot one that was missed.
    const decided = async (): Promise<number> => (await book.schedules.decisions("often")).items.length;
    for (const slots of [1, 2]) {
      const { nextAt } = await book.schedules.get("often");
      await clock.advance((nextAt ?? 0) - clock.now());
      while ((await decided()) < slots) await clock.advance(1);
    }
    while (heard.length === 0) await clock.nextTurn();
    gate.resolve();
    await worker.idle();

    const [topic, payload] = heard[0] ?? [];
    const { schedule: name, kind, slots } = payload as { schedule: string; kind: string; slots: number };
    assert.deepEqual([topic, name, kind, slots], ["schedule.skipped", "often", "skipped_overlap", 1]);
  });
}
