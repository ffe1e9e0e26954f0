import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventKillPoints } from "../support/event-kill-points.ts";
import { listener, type AnyListener } from "../../src/index.ts";
import { startChild } from "../support/child-process.ts";
import { heard, killWhileHearing, lag, openScene, until } from "../support/event-kills.ts";
import { backends, openTest } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("30 events for three listeners are all heard and done once in the record, whatever is killed", async (t) => {
      await killWhileHearing(t, backend, 6);
    });

    test("killed anywhere while it publishes, an event is there with all its deliveries, or not at all", async (t) => {
      const { book, url } = await openTest(t, backend, { use: ["one", "two"].map(ear) });
      const points = eventKillPoints.flatMap((name) => [1, 2].map((pass) => `${name}:${pass}`));

      for (const point of points) {
        const child = startChild(t, "say", [url], { env: { DAYBOOK_CRASH_AT: point } });
        const { signal, stderr } = await child.ended;
        assert.equal(signal, "SIGKILL", `${point}: ${stderr}`);
        // Each transaction says two things; the first transaction is on disk when the second one begins.
        assert.equal((await book.events.list()).items.length, 0, point);
      }
      const child = startChild(t, "say", [url], { env: { DAYBOOK_CRASH_AT: "events.said:4" } });
      assert.equal((await child.ended).signal, "SIGKILL");

      const { items } = await book.events.list();
      assert.deepEqual(
        items.map(({ deliveries }) => deliveries.map(({ listener }) => listener)),
        [
          ["one", "two"],
          ["one", "two"],
        ],
      );
      assert.deepEqual(await book.doctor(), []);
    });

    test("a handler that kills its process is a dead letter after its losses, and takes no neighbour with it", async (t) => {
      const { book, ledger, start } = await openScene(t, backend);
      for (let n = 0; n < 10; n++) await book.events.publish("talk.said", { n });
      await book.events.publish("poison.take", null);
      for (let n = 10; n < 20; n++) await book.events.publish("talk.said", { n });

      const isOver = async (): Promise<boolean> =>
        (await lag(book)) === 0 && (await book.deadLetters.list()).items.length > 0;
      while (!(await isOver())) {
        const child = await start().catch(() => undefined);
        if (child === undefined) continue;
        let gone = false;
        void child.ended.then(() => (gone = true));
        await until(async () => gone || (await isOver()));
      }

      const { items } = await book.deadLetters.list();
      assert.deepEqual(
        items.map((letter) => [letter.listener, letter.error.type, letter.status]),
        [["poison", "SessionLost", "dead"]],
      );
      const told = await book.events.list({ topic: "event.dead_letter" });
      assert.equal(told.items.length, 1);
      // The first two of its deaths were shared, so it is not blamed for them: two more, alone, are its allowance.
      const deaths = heard(ledger).filter(([name]) => name === "poison");
      assert.deepEqual([deaths.length, new Set(deaths.map(([, , pid]) => pid)).size], [4, 4]);
      const said = await book.events.list({ topic: "talk.said", limit: 100 });
      assert.ok(said.items.every(({ status }) => status === "acked"));
      assert.deepEqual(await book.doctor(), []);
    });
  });
}

function ear(name: string): AnyListener {
  return listener(name, { on: "talk.*", run: () => undefined });
}
