// Reservations that wait for their turn and last as long as they were asked to.
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, listener, sink, type ManualClock } from "../../src/index.ts";
import { reservationVerbs, type Reservations } from "../../src/jobs/direct/reservation.ts";
import type { SessionKey } from "../../src/telemetry/session.ts";
import { ok, openCalls, target } from "../calls/target.ts";
import { openEngine } from "../jobs/open-engine.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";

const work = job("work", { run: () => undefined });

type Two = {
  readonly mine: Reservations;
  readonly theirs: Reservations;
  readonly sessions: { readonly mine: string; readonly theirs: string };
  readonly clock: ManualClock;
};

/** Two sessions at one book. */
async function openTwo(t: TestContext, backend: Backend): Promise<Two> {
  const at = await openEngine(t, backend, { use: [work] });
  const other = await at.newSession();
  const of = (session: SessionKey): Reservations =>
    reservationVerbs({ ...at.engine, session: () => session }, (unit) => at.store.write(unit), "default");
  const sessions = { mine: at.session.id, theirs: other.id };
  return { mine: of(at.session), theirs: of(other), sessions, clock: at.clock };
}

/** Moves the clock until it holds: what is asked takes its time. */
async function until(clock: ManualClock, holds: () => boolean): Promise<void> {
  while (!holds()) await clock.advance(50);
}

/** How a promise stands, without waiting for it. */
function watch<T>(promise: Promise<T>): { ended: boolean; readonly promise: Promise<T> } {
  const watched = { ended: false, promise };
  promise.then(
    () => (watched.ended = true),
    () => (watched.ended = true),
  );
  return watched;
}

for (const backend of backends) {
  describe(backend, () => {
    test("one that waits gets the queue when it is released", async (t) => {
      const { mine, theirs, sessions, clock } = await openTwo(t, backend);
      const { id } = await theirs.reserve("q");
      const asked = watch(mine.reserve("q", { wait: true, note: "next" }));
      await clock.advance(1000);
      assert.equal(asked.ended, false);

      await theirs.release(id);
      await until(clock, () => asked.ended);

      const got = await asked.promise;
      const held = await mine.list();
      assert.deepEqual(
        held.map((each) => [each.id, each.note, each.sessionId]),
        [[got.id, "next", sessions.mine]],
      );
    });

    test("one that waits gets the queue when nobody renews the one before, and not earlier", async (t) => {
      const { mine, theirs, clock } = await openTwo(t, backend);
      const { id } = await theirs.reserve("q", { expires: "5s" });
      const asked = watch(mine.reserve("q", { wait: "1h", expires: "6h" }));
      await clock.advance(4000);
      assert.equal(asked.ended, false);
      await clock.advance(1500);
      await until(clock, () => asked.ended);

      const got = await asked.promise;
      assert.ok(got.expiresAt > clock.now() && got.expiresAt <= clock.now() + 6 * 3_600_000);
      await assert.rejects(theirs.renew(id), { code: "conflict", message: /is expired: reserve again/ });
    });

    test("one that waits for so long and no longer is told who holds the queue", async (t) => {
      const { mine, theirs, sessions, clock } = await openTwo(t, backend);
      const { id } = await theirs.reserve("q");
      const asked = watch(mine.reserve("q", { wait: "2s" }));
      await until(clock, () => asked.ended);

      const holder = sessions.theirs;
      await assert.rejects(asked.promise, {
        code: "timeout",
        message: new RegExp(`queue "q" is reserved by session ${holder} until`),
        details: { queue: "q", reservation: id, sessionId: holder },
      });
      await assert.rejects(mine.reserve("q"), { code: "conflict", message: new RegExp(holder) });
      await assert.rejects(mine.reserve("q", { wait: false }), { code: "conflict" });
    });

    test("of several that wait each gets the queue once", async (t) => {
      const { mine, theirs, clock } = await openTwo(t, backend);
      const turns: string[] = [];
      const take = async (book: Reservations, name: string): Promise<void> => {
        const { id } = await book.reserve("q", { wait: true });
        turns.push(name);
        await book.release(id);
      };
      const all = watch(Promise.all([take(mine, "a"), take(theirs, "b"), take(mine, "c"), take(theirs, "d")]));
      await until(clock, () => all.ended);

      await all.promise;
      assert.deepEqual(turns.toSorted(), ["a", "b", "c", "d"]);
      assert.deepEqual(await mine.list(), []);
    });

    test("it ends when it was asked to, and a renewal gives it as long again", async (t) => {
      const { mine, theirs, clock } = await openTwo(t, backend);
      const start = clock.now();
      const { id, expiresAt } = await mine.reserve("q", { expires: "30s" });
      assert.equal(expiresAt, start + 30_000);
      clock.step(29_000);
      const renewed = await mine.renew(id);
      assert.deepEqual(renewed, { id, expiresAt: start + 59_000 });
      clock.step(29_999);
      await assert.rejects(theirs.reserve("q"), { code: "conflict" });
      clock.step(1);

      await theirs.reserve("q");
      await assert.rejects(mine.renew(id), { code: "conflict", message: /is expired: reserve again/ });
    });

    test("who waits when the book is closed is told so", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      await book.reservations.reserve("q");
      const asked = assert.rejects(book.reservations.reserve("q", { wait: true }), { code: "closed" });

      await book.close();

      await asked;
    });

    test("a wait or an end that is none is refused", async (t) => {
      const { book } = await openTest(t, backend, { use: [work] });
      for (const [options, message] of [
        [{ wait: "soon" }, /wait/],
        [{ wait: null }, /wait/],
        [{ expires: "0s" }, /expires/],
        [{ expires: "25h" }, /expires/],
        [{ expries: "1m" }, /did you mean "expires"\?/],
      ] as const) {
        await assert.rejects(book.reservations.reserve("q", options as never), { code: "invalid", message });
      }
      assert.deepEqual(await book.reservations.list(), []);
    });

    test("a reservation of the default queue holds up its jobs, and no delivery, call or sink", async (t) => {
      const server = await target(t, ok);
      const heard: string[] = [];
      const tell = listener("tell", { on: "said", run: () => void heard.push("listener") });
      const out = sink("out", { on: "said", to: () => void heard.push("sink") });
      const { book } = await openCalls(t, backend, { use: [work, tell, out] });
      await book.reservations.reserve("default");
      const { id } = await book.jobs.enqueue(work, {});
      await book.events.publish("said", {});
      const call = await book.calls.submit({ url: server.url });

      const worker = await book.startWorker();
      await worker.idle();
      await worker.stop();

      assert.deepEqual(heard.toSorted(), ["listener", "sink"]);
      assert.equal((await book.calls.get(call.id)).status, "succeeded");
      assert.equal((await book.jobs.get(id)).status, "queued");
      const queues = (await book.jobs.list({ kind: "all" })).items.map(({ name, queue }) => `${name} ${queue}`);
      assert.deepEqual(queues.toSorted(), [
        "daybook.call calls",
        "listener:sink:out events",
        "listener:tell events",
        "work default",
      ]);
    });
  });
}
