import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { job, manualClock, schedule, type Book } from "../../src/index.ts";
import { fireAll } from "../schedules/fire-all.ts";
import { backends, openTest, openTestStore } from "../support/open-test.ts";

const hour = 3_600_000;
const noon = Date.UTC(2026, 0, 15, 12);
const work = job<{ n?: number }>("work", { run: () => undefined });
const hourly = { cron: "0 * * * *", job: work, params: {}, missed: "all", overlap: "allow" } as const;

for (const backend of backends) {
  describe(backend, () => {
    const openAt = async (t: TestContext, start: number) => {
      const clock = manualClock({ at: start });
      const { book, url } = await openTest(t, backend, { use: [work], clock });
      const { store } = await openTestStore(t, backend, { url, clock });
      const tick = (): Promise<void> => fireAll(store);
      return { book, clock, url, tick };
    };
    const ledger = async (book: Book, name: string): Promise<string[]> =>
      (await book.schedules.decisions(name)).items
        .toReversed()
        .map(({ at, kind, slots }) => `${(at - noon) / hour} ${kind}${slots > 1 ? ` × ${slots}` : ""}`);

    for (const [what, changes] of [
      ["missed", { missed: "latest" }],
      ["maxLateness", { maxLateness: "48h" }],
      ["jitter", { jitter: "1s" }],
      ["params", { params: { n: 2 } }],
    ] as const) {
      test(`an edit of ${what} alone catches up on nothing, and leaves what is due now`, async (t) => {
        const { book, clock, tick } = await openAt(t, noon + 1);
        await book.schedules.create("edited", hourly);
        clock.step(3 * hour + 20_000);
        await book.schedules.edit("edited", changes);
        clock.step(2000);
        await tick();
        assert.deepEqual(await ledger(book, "edited"), ["1 skipped_missed × 2", "3 fired"]);
        const why = await book.schedules.why("edited", noon + hour);
        assert.match(why.because.join(" "), /it was edited/);
      });
    }

    test("a program whose job has new attempts has not edited its schedule: missed slots still run", async (t) => {
      const { book, clock, url, tick } = await openAt(t, noon + 1);
      const start = async (options: object, attempts: number): Promise<void> => {
        const mine = job("mine", { attempts, run: () => undefined });
        const { book: program } = await openTest(t, backend, {
          url,
          clock,
          use: [schedule("code", { ...hourly, job: mine, ...options })],
        });
        await program.close();
      };
      await start({}, 1);
      clock.step(2 * hour);
      await start({}, 5);
      await tick();
      const { items } = await book.jobs.list();
      assert.deepEqual([await ledger(book, "code"), items[0]?.attempts], [["1 caught_up", "2 fired"], 5]);

      clock.step(2 * hour);
      await start({ params: { n: 1 } }, 5);
      await tick();
      assert.deepEqual((await ledger(book, "code")).slice(2), ["3 skipped_missed", "4 fired"]);
    });

    test("of two edits at once, the second is told to look again", async (t) => {
      const { book } = await openAt(t, noon);
      await book.schedules.create("both", hourly);
      const edits = await Promise.allSettled([
        book.schedules.edit("both", { jitter: "5s" }),
        book.schedules.edit("both", { maxFires: 9 }),
      ]);
      // Whether they meet is for the back end to say; neither takes back what the other has saved.
      const refused = edits.flatMap((each) => (each.status === "rejected" ? [each.reason as { code: string }] : []));
      const { jitterMs, maxFires } = await book.schedules.get("both");
      if (refused.length === 0) assert.deepEqual([jitterMs, maxFires], [5000, 9]);
      assert.ok(refused.every(({ code }) => code === "conflict") && refused.length < 2);
    });

    test("an interval keeps what it is counted from when its length is edited", async (t) => {
      const { book } = await openAt(t, noon);
      await book.schedules.create("poll", { every: "1h", anchor: noon + 60_000, job: work, params: {} });
      const { nextAt } = await book.schedules.edit("poll", { every: "2h" });
      assert.equal(nextAt, noon + 60_000);
    });

    test("slots before a pause are recorded as missed, not as paused", async (t) => {
      const { book, clock } = await openAt(t, noon + 1);
      await book.schedules.create("paused", hourly);
      clock.step(2 * hour);
      await book.schedules.pause("paused", "audit");
      clock.step(2 * hour);
      await book.schedules.resume("paused");
      assert.deepEqual(await ledger(book, "paused"), ["1 skipped_missed × 2", "3 skipped_paused × 2"]);
      for (const note of ["a\0b", "x".repeat(2001), 7 as never]) {
        await assert.rejects(book.schedules.pause("paused", note), { code: "invalid" });
      }
    });

    test("a schedule that is removed and made again begins now", async (t) => {
      const { book, clock } = await openAt(t, noon);
      await book.schedules.create("again", hourly);
      await book.schedules.remove("again");
      clock.step(hour);
      assert.equal((await book.schedules.create("again", hourly)).createdAt, noon + hour);
    });

    test("a renamed schedule keeps its decisions, its cursor and its jobs, and fires no slot twice", async (t) => {
      const { book, clock, tick } = await openAt(t, noon);
      const made = await book.schedules.create("old", { ...hourly, jitter: "20m" });
      await book.schedules.create("other", hourly);
      clock.step(2 * hour);
      await tick();
      const before = await book.schedules.decisions("old");

      const renamed = await book.write((tx) => tx.schedules.rename("old", "new"));
      await tick();
      const [job] = (await book.jobs.list({ schedule: "new" })).items;

      assert.deepEqual([renamed.id, renamed.name, renamed.warning], [made.id, "new", null]);
      assert.deepEqual(await book.schedules.decisions("new"), before);
      assert.equal(job?.id, before.items[0]?.jobId);
      assert.equal((await book.jobs.list({ schedule: "old" })).items.length, 0);
      await assert.rejects(book.schedules.get("old"), { code: "not_found" });
      await assert.rejects(book.schedules.rename("old", "newer"), { code: "not_found" });
      await assert.rejects(book.schedules.rename("new", "other"), { code: "conflict", message: /"other" exists/ });
      await assert.rejects(book.schedules.rename("new", " x"), { code: "invalid" });
      // The name of a removed schedule may be taken; what it decided stays with it.
      await book.schedules.remove("other");
      assert.equal((await book.schedules.rename("new", "other")).id, made.id);
      assert.deepEqual(await book.schedules.decisions("other"), before);
      assert.equal((await book.schedules.create("old", hourly)).fires, 0);
      assert.deepEqual(await book.doctor(), []);
    });

    test("a schedule of code that is renamed in the book is the one that the program has under its new name", async (t) => {
      const clock = manualClock({ at: noon });
      const { book, url } = await openTest(t, backend, { clock, use: [schedule("old", hourly)] });
      const { id } = await book.schedules.get("old");

      const { warning } = await book.schedules.rename("old", "new");
      await book.close();
      const { book: next } = await openTest(t, backend, { url, clock, use: [schedule("new", hourly)] });

      assert.match(warning ?? "", /stop the programs that call it "old", rename it, start those that call it "new"$/);
      assert.deepEqual(
        (await next.schedules.list()).items.map((each) => [each.name, each.id]),
        [["new", id]],
      );
    });

    test("a rename takes the place of what a program with the new name has made, until that decides a slot", async (t) => {
      const { book: first, clock, url, tick } = await openAt(t, noon);
      const withCode = async (name: string, cron: string) =>
        (await openTest(t, backend, { url, clock, use: [schedule(name, { ...hourly, cron })] })).book;
      await withCode("old", "0 * * * *");
      clock.step(hour);
      await tick();
      const { id } = await first.schedules.get("old");
      clock.step(hour / 2);
      // The new program also has another timing.
      await withCode("new", "0 */2 * * *");
      const renamed = await first.schedules.rename("old", "new");
      assert.deepEqual([renamed.id, renamed.expression, renamed.fires], [id, "0 */2 * * *", 1]);
      clock.step(hour / 2);
      await tick();
      assert.deepEqual(await ledger(first, "new"), ["1 fired", "2 fired"]);

      // A program of before starts once more: its own is new, and what has decided stays what it is.
      await withCode("old", "0 * * * *");
      await withCode("new", "0 */2 * * *");
      const conflict = { code: "conflict", message: /"old" exists: it is defined in code and has decided slots/ };
      clock.step(hour);
      await tick();
      await assert.rejects(first.schedules.rename("new", "old"), conflict);
      assert.deepEqual(
        (await first.schedules.list()).items.map((each) => [each.name, each.id === id, each.fires]),
        [
          ["new", true, 2],
          ["old", false, 1],
        ],
      );
      assert.deepEqual(await first.doctor(), []);
    });

    test("an unknown schedule name is answered with the nearest one, by readers too", async (t) => {
      const { book } = await openAt(t, noon);
      await book.schedules.create("hourly", hourly);
      const { schedules } = book;
      for (const read of [
        ...[() => schedules.get("hurly"), () => schedules.why("hurly", noon), () => schedules.preview("hurly")],
        ...[() => schedules.decisions("hurly"), () => schedules.backfill("hurly", noon - 1, noon)],
      ]) {
        await assert.rejects(read, { code: "not_found", message: /did you mean "hourly"\?/ });
      }
      await assert.rejects(book.tenant("acme").schedules.get("hurly"), { message: 'there is no schedule "hurly"' });
      await assert.rejects(schedules.decisions("hourly", { after: "abc" }), { code: "invalid" });
    });

    test("a schedule name that is no text is refused, by readers too", async (t) => {
      const { schedules } = (await openAt(t, noon)).book;
      const none = null as never;
      const verbs: Record<string, () => Promise<unknown>> = {
        create: () => schedules.create(none, hourly),
        edit: () => schedules.edit(none, { missed: "all" }),
        pause: () => schedules.pause(none),
        resume: () => schedules.resume(none),
        remove: () => schedules.remove(none),
        trigger: () => schedules.trigger(none),
        backfill: () => schedules.backfill(none, noon - 1, noon),
        rename: () => schedules.rename(none, "new"),
        get: () => schedules.get(none),
        decisions: () => schedules.decisions(none),
        why: () => schedules.why(none, noon),
      };
      for (const [verb, call] of Object.entries(verbs)) {
        await assert.rejects(call, { code: "invalid", message: "schedule name null must be a string" }, verb);
      }
      for (const name of [undefined, {}]) {
        await assert.rejects(schedules.rename(name as never, "new"), {
          message: /^schedule name .* must be a string$/,
        });
      }
    });
  });
}
