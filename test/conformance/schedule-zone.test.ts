// On whose clock a schedule goes that names no zone.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { app, job, manualClock, open, schedule, type Book } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const noon = Date.UTC(2026, 0, 15, 12);
const work = job("work", { run: () => undefined });

async function zones(book: Book): Promise<Record<string, string>> {
  const { items } = await book.schedules.list();
  return Object.fromEntries(items.map(({ name, zone }) => [name, zone]));
}

for (const backend of backends) {
  describe(`the zone of a schedule on ${backend}`, () => {
    test("is its own, else its app's, else the book's, else UTC", async (t) => {
      const clock = manualClock({ at: noon });
      const setup: Parameters<typeof app>[1]["setup"] = (home) => {
        home.daily("07:00", { name: "own", zone: "Asia/Tokyo" }, () => undefined);
        home.cron("0 7 * * *", { name: home.zone }, () => undefined);
      };
      const use = [
        schedule("own", { daily: "07:00", zone: "Asia/Tokyo", job: work, params: {} }),
        schedule("plain", { daily: "07:00", job: work, params: {} }),
        app("abroad", { zone: "America/New_York", setup }),
        app("home", { setup }),
      ];
      const { book: utc, url } = await openTest(t, backend, { use, clock });
      const apps = { "default/abroad/0/own": "Asia/Tokyo", "default/home/0/own": "Asia/Tokyo", own: "Asia/Tokyo" };
      const abroad = { "default/abroad/0/America/New_York": "America/New_York" };
      assert.deepEqual(await zones(utc), { ...apps, ...abroad, plain: "UTC", "default/home/0/UTC": "UTC" });
      assert.equal((await utc.info()).zone, "UTC");
      await utc.close();

      const { book } = await openTest(t, backend, { url, use, clock, zone: "Europe/Oslo" });
      const oslo = { plain: "Europe/Oslo", "default/home/0/Europe/Oslo": "Europe/Oslo" };

      assert.deepEqual(await zones(book), { ...apps, ...abroad, ...oslo });
      const { nextAt, words } = await book.schedules.get("plain");
      assert.equal(nextAt, Date.UTC(2026, 0, 16, 6));
      assert.equal(words, "every day at 07:00 (Europe/Oslo)");
      const { registered } = await book.apps.get("abroad");
      assert.deepEqual(
        registered.map(({ settings, nextAt: next }) => [settings["zone"], next]),
        [
          ["America/New_York", noon + 86_400_000],
          ["Asia/Tokyo", Date.UTC(2026, 0, 15, 22)],
        ],
      );
    });

    test("of the book is kept for programs that name none; the last one that names another changes it", async (t) => {
      const clock = manualClock({ at: noon });
      const { book: first, url } = await openTest(t, backend, { clock, zone: "Europe/Oslo" });
      await first.close();
      const { book } = await openTest(t, backend, { url, clock, worker: false });

      await book.schedules.create("made", { daily: "07:00", job: "work" });
      await book.write((tx) => tx.schedules.create("made in a transaction", { daily: "07:00", job: "work" }));
      const [preview] = await book.schedules.preview({ daily: "07:00" }, { count: 1 });
      const oslo = { made: "Europe/Oslo", "made in a transaction": "Europe/Oslo" };
      assert.deepEqual(await zones(book), oslo);
      assert.equal(preview?.at, Date.UTC(2026, 0, 16, 6));

      const { book: second } = await openTest(t, backend, { url, clock, zone: "asia/tokyo" });
      assert.equal((await book.info()).zone, "Asia/Tokyo");
      assert.deepEqual(await zones(second), oslo);
      await second.schedules.edit("made", { daily: "08:00" });
      await second.schedules.edit("made in a transaction", { zone: null });
      assert.deepEqual(await zones(second), { made: "Europe/Oslo", "made in a transaction": "Asia/Tokyo" });
      assert.deepEqual(await second.doctor(), []);
    });
  });
}

test("a zone that is none is refused where it is given, with the one that was meant", async () => {
  const setup = (): void => undefined;

  await assert.rejects(open(":memory:", { zone: "Oslo" }), /zone is "Oslo", .*did you mean "Europe\/Oslo"\?/);
  await assert.rejects(
    open(":memory:", { zone: "Europe/Oslo", readOnly: true }),
    /readOnly .* a zone or .*: leave that out/,
  );
  assert.throws(() => app("lamp", { zone: "Oslo", setup }), /did you mean "Europe\/Oslo"\?/);
});
