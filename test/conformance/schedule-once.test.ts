import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { job, manualClock, schedule } from "../../src/index.ts";
import { fireDue } from "../../src/schedules/fire.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

const minute = 60_000;
const noon = Date.UTC(2026, 0, 15, 12);
const work = job("work", { run: () => undefined });

for (const backend of backends) {
  describe(backend, () => {
    test('"in ten minutes" fires once, ten minutes after it was written', async (t) => {
      const clock = manualClock({ at: noon });
      const { book, url } = await openTest(t, backend, { use: [work], clock });
      const { store } = await openTestStore(t, backend, { url, clock });
      const made = await book.schedules.create("soon", { in: "10m", job: work, params: {} });
      assert.deepEqual([made.kind, made.nextAt], ["once", noon + 10 * minute]);
      const [preview] = await book.schedules.preview("soon", { edit: { in: "1h" } });
      assert.equal(preview?.at, noon + 60 * minute);
      assert.equal((await book.schedules.preview({ in: "5m" }))[0]?.at, noon + 5 * minute);

      clock.step(4 * minute);
      assert.equal((await book.schedules.edit("soon", { jitter: null })).nextAt, noon + 10 * minute, "it is not moved");
      assert.equal((await book.schedules.edit("soon", { in: "2m" })).nextAt, noon + 6 * minute, "counted anew");
      clock.step(2 * minute);
      await store.write((tx) => fireDue(tx, { kinds: {} }));
      const { nextAt, fires } = await book.schedules.get("soon");
      assert.deepEqual([nextAt, fires], [null, 1]);
      assert.deepEqual(await book.doctor(), []);
    });

    test('in code, "in" counts once from the first start, and anew when its duration changes', async (t) => {
      const clock = manualClock({ at: noon });
      const start = async (options: object, url?: string) => {
        const soon = schedule("soon", { in: "10m", job: work, params: {}, ...options });
        return openTest(t, backend, { use: [soon], clock, ...(url === undefined ? {} : { url }) });
      };
      const { book, url } = await start({});
      const { updatedAt, nextAt } = await book.schedules.get("soon");
      assert.equal(nextAt, noon + 10 * minute);

      clock.step(minute);
      const { book: again } = await start({}, url);
      assert.deepEqual((await again.schedules.get("soon")).updatedAt, updatedAt);
      const { book: other } = await start({ missed: "skip" }, url);
      assert.equal((await other.schedules.get("soon")).nextAt, noon + 10 * minute, "another policy moves nothing");
      const { book: longer } = await start({ in: "20m" }, url);
      assert.equal((await longer.schedules.get("soon")).nextAt, noon + 21 * minute);

      const { store } = await openTestStore(t, backend, { url, clock });
      clock.step(20 * minute);
      await store.write((tx) => fireDue(tx, { kinds: {} }));
      clock.step(60 * minute);
      const { book: late } = await start({ in: "20m" }, url);
      const { nextAt: none, fires } = await late.schedules.get("soon");
      assert.deepEqual([none, fires], [null, 1], "a start after it does not bring it back");
    });

    test("a time or an end in the past is refused, except in code", async (t) => {
      const clock = manualClock({ at: noon });
      const past = schedule("past", { at: noon - 1, job: work, params: {} });
      const { book } = await openTest(t, backend, { use: [work, past], clock });
      assert.equal((await book.schedules.get("past")).nextAt, null);

      const refused = { code: "invalid", message: /would never fire: it has no slot after 2026-01-15T12:00:00/ };
      await assert.rejects(book.schedules.create("once", { at: noon, job: work, params: {} }), refused);
      await assert.rejects(book.schedules.create("ended", { every: "1h", end: noon, job: work, params: {} }), refused);
      await book.schedules.create("once", { at: noon + 1, job: work, params: {} });
      await assert.rejects(book.schedules.edit("once", { at: noon - 1 }), refused);
      for (const wrong of [{ in: "0s" }, { in: "soon" }, { in: "5m", at: noon + 1 }, { in: "5m", end: noon + 1 }]) {
        // @ts-expect-error -- a schedule says when in one way
        const made = book.schedules.create("wrong", { ...wrong, job: work, params: {} });
        await assert.rejects(made, { code: "invalid" }, JSON.stringify(wrong));
      }
      clock.step(minute);
      await book.schedules.edit("once", { priority: 3 });
    });
  });
}
