import assert from "node:assert/strict";
import { test } from "node:test";
import { app, event, job, listener, manualClock, open } from "../../src/index.ts";
import { render } from "../../src/verbs/render.ts";
import { nouns } from "../../src/verbs/table.ts";
import { nameOf, type Verb } from "../../src/verbs/verb.ts";

test("a table shows names whole on any terminal, because people copy them into the next command", async (t) => {
  const long = "the night light of the long corridor on the second floor";
  const clock = manualClock();
  const lamp = app("lamp-of-the-long-corridor-on-the-second-floor", {
    setup(home) {
      home.every("1h", { name: long }, () => Promise.reject(new Error("x".repeat(200))));
      home.on("bell", { name: `${long} by bell` }, () => undefined);
    },
  });
  const failing = job(`${long} job`, { attempts: 1, run: () => Promise.reject(new Error("no")) });
  const Bell = event("bell");
  const hears = listener(`${long} listener`, { on: Bell, run: () => undefined });
  const book = await open(":memory:", { use: [lamp, failing, hears], clock });
  t.after(() => book.close());
  const worker = await book.startWorker();
  await book.schedules.trigger(`default/${lamp.key}/0/${long}`);
  await book.jobs.enqueue(failing, {}, { queue: `${long} queue` });
  await book.events.publish(Bell, null);
  await worker.idle();
  const whole: Readonly<Record<string, readonly string[]>> = {
    "apps list": [lamp.key],
    "jobs list": [`default/${lamp.key}/0/${long}`, `${long} job`],
    "listeners list": [`${long} listener`],
    "queues list": [`${long} queue`],
    "runs list": [`default/${lamp.key}/0/${long}`, `${long} job`],
    "runs slow": [long, `${long} job`],
    "schedules list": [`default/${lamp.key}/0/${long}`],
  };
  // Slow runs come from rollups, which follow in a moment.
  while ((await book.telemetry.slow()).length < 2) await clock.advance(1000);

  const asked: string[] = [];
  for (const noun of Object.values(nouns)) {
    const verbs: { readonly [name: string]: Verb } = await noun.load();
    for (const verb of Object.values(verbs)) {
      const names = whole[nameOf(verb)];
      if (names === undefined) continue;
      asked.push(nameOf(verb));
      const answer: unknown = await verb.run(book, {}, { signal: AbortSignal.timeout(60_000), tenant: null });
      const shown = render(verb.show(answer, {}), { width: 70, colour: false, zone: "UTC", now: clock.now() });
      for (const name of names) assert.ok(shown.includes(name), `${nameOf(verb)}:\n${shown}`);
    }
  }
  assert.deepEqual(asked.toSorted(), Object.keys(whole).toSorted());
});
