import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { listener } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";

const broken = { yes: true };
const hear = listener("hear", {
  on: "order.*",
  attempts: 1,
  run: () => {
    if (broken.yes) throw new RangeError("no room");
  },
});

for (const backend of cliBackends) {
  test(`${backend}: events, listeners and dead letters by the command line`, async (t) => {
    broken.yes = true;
    const { book, url } = await openTest(t, backend, { use: [hear] });
    const worker = await book.startWorker();

    const published = await answer(["events", "publish", "order.paid", "--payload", '{"n":1}', "--id", "e-1"], url);
    const again = await runCli(["events", "publish", "order.paid", "--id", "e-1", "--book", url]);
    const wrong = await refusal(["events", "publish", "order..paid"], url);
    while ((await book.deadLetters.list()).items.length === 0) await worker.idle();
    const shown = await answer(["events", "show", "e-1"], url);
    const listed = items(await answer(["events", "list", "--topic", "order.*"], url));
    const groups = await answer(["dead-letters", "list", "--by-error"], url);
    const [letter] = items(await answer(["dead-letters", "list", "--error", "RangeError"], url));
    const dry = await answer(["dead-letters", "redrive", "--listener", "hear", "--dry-run"], url);
    const dryOnes = [];
    for (const verb of [["redrive"], ["discard", "--reason", "old"]]) {
      dryOnes.push(await answer(["dead-letters", ...verb, String(letter?.["id"]), "--dry-run"], url));
    }
    const [untouched] = items(await answer(["dead-letters", "list"], url));
    const needed = await refusal(["dead-letters", "discard", String(letter?.["id"])], url);
    const gone = await answer(["dead-letters", "discard", String(letter?.["id"]), "--reason", "old"], url);
    const letterWords = await runCli(["dead-letters", "show", String(letter?.["id"]), "--book", url]);

    assert.deepEqual(published, { id: "e-1", topic: "order.paid", created: true, deliveries: 1 });
    assert.match(again.stdout, /e-1 is in the book already/);
    assert.match(wrong[2], /empty segment/);
    assert.deepEqual([shown["status"], shown["payload"]], ["dead_lettered", { n: 1 }]);
    assert.equal(listed.length, 1);
    assert.match(JSON.stringify(groups), /"count":1/);
    assert.deepEqual(
      [letter?.["listener"], letter?.["status"], dry, gone],
      ["hear", "dead", { count: 1 }, { count: 1 }],
    );
    assert.deepEqual([dryOnes, untouched?.["status"]], [[{ count: 1 }, { count: 1 }], "dead"]);
    assert.match(needed[2], /give --reason/);
    assert.match(letterWords.stdout, /status +discarded[^]*reason +old/);

    broken.yes = false;
    const paused = await answer(["listeners", "pause", "hear", "--note", "move"], url);
    await answer(["events", "publish", "order.sent"], url);
    const [row] = items(await answer(["listeners", "list"], url));
    const table = await runCli(["listeners", "list", "--book", url]);
    const lag = await answer(["listeners", "lag", "hear"], url);
    const skipped = await answer(["listeners", "skip", "hear", "--to", "now"], url);
    const rewound = await answer(["listeners", "rewind", "hear", "--event", "e-1"], url);
    await answer(["listeners", "resume", "hear"], url);
    const which = await refusal(["listeners", "rewind", "hear"], url);
    const replayed = await answer(["events", "replay", "--topic", "order.*", "--dry-run"], url);
    const cleaned = await answer(["events", "cleanup", "--older-than", "90d", "--dry-run"], url);
    const removed = await answer(["listeners", "remove", "hear"], url);

    assert.deepEqual(paused, { name: "hear", paused: true });
    assert.deepEqual([(row?.["paused"] as { note: string } | undefined)?.note, row?.["hosted"]], ["move", true]);
    assert.match(table.stdout, /hear +order\.\* +live, paused +1 /);
    assert.equal(lag["events"], 1);
    assert.deepEqual([skipped["skipped"], rewound["to"]], [1, { event: "e-1" }]);
    assert.match(which[2], /give one of --to beginning/);
    assert.equal(replayed["count"], 2);
    assert.equal(cleaned["removed"], 0);
    assert.deepEqual(removed, { name: "hear", removed: true });
    assert.deepEqual((await refusal(["listeners", "pause", "hear"], url)).slice(0, 2), [4, "not_found"]);
  });

  test(`${backend}: events are followed as they are published`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const tail = startCli(["events", "tail", "--topic", "a.*", "--count", "2", "--book", url]);
    let over = false;
    void tail.ended.then(() => (over = true));

    const badTopic = await refusal(["events", "tail", "--topic", "a..b", "--count", "1"], url);
    const badCount = await refusal(["events", "tail", "--count", "some"], url);
    assert.match(`${badTopic[2]} ${badCount[2]}`, /empty segment.*--count/);
    for (let n = 0; !over; n++) {
      await book.events.publish("a.b", { n });
      await book.events.publish("c.d", { n });
      await systemClock.nextTurn();
    }
    const { stdout: said } = await tail.ended;

    assert.match(said, /a\.b {2}\{"n":\d+\}\n.*a\.b/);
    assert.doesNotMatch(said, /c\.d/);
  });
}
