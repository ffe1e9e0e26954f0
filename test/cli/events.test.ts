import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { listener, manualClock } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, parsed, runCli, startCli } from "./run-cli.ts";

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
    const again = await runCli(["events", "publish", "order.paid", '--payload={"n":1}', "--id=e-1", `--book=${url}`]);
    const wrong = await refusal(["events", "publish", "order..paid"], url);
    while ((await book.deadLetters.list()).items.length === 0) await worker.idle();
    const shown = await answer(["events", "show", "e-1"], url);
    const listed = items(await answer(["events", "list", "--topic", "order.*"], url));
    const groups = await answer(["dead-letters", "groups"], url);
    const [letter] = items(await answer(["dead-letters", "list", "--error", "RangeError"], url));
    const dry = await answer(["dead-letters", "redrive", "--listener", "hear", "--dry-run"], url);
    const dryOnes = [
      await answer(["dead-letters", "redrive", String(letter?.["id"]), "--dry-run"], url),
      await answer(["dead-letters", "discard", String(letter?.["id"]), "--reason", "old"], url),
      await answer(["dead-letters", "discard", "--listener", "hear"], url),
    ];
    const [untouched] = items(await answer(["dead-letters", "list"], url));
    const needed = await refusal(["dead-letters", "discard", String(letter?.["id"]), "--apply"], url);
    const gone = await answer(["dead-letters", "discard", String(letter?.["id"]), "--reason", "old", "--apply"], url);
    const discarded = items(await answer(["dead-letters", "list", "--status", "discarded"], url));
    const letterWords = await runCli(["dead-letters", "show", String(letter?.["id"]), "--book", url]);

    assert.deepEqual(published, { id: "e-1", topic: "order.paid", created: true, deliveries: 1, live: 0 });
    assert.match(again.stdout, /e-1 is in the book already/);
    assert.match(wrong[2], /empty segment/);
    assert.deepEqual([shown["status"], shown["payload"]], ["dead_lettered", { n: 1 }]);
    assert.equal(listed.length, 1);
    assert.match(JSON.stringify(groups), /"count":1/);
    assert.deepEqual(
      [letter?.["listener"], letter?.["status"], dry, gone],
      ["hear", "dead", { dryRun: true, count: 1, jobId: null }, { dryRun: false, count: 1 }],
    );
    assert.deepEqual(dryOnes, [
      { dryRun: true, count: 1, jobId: null },
      { dryRun: true, count: 1 },
      { dryRun: true, count: 1 },
    ]);
    assert.equal(untouched?.["status"], "dead");
    assert.match(needed[2], /give a reason/);
    assert.deepEqual(
      discarded.map((each) => each["id"]),
      [letter?.["id"]],
    );
    assert.match(letterWords.stdout, /status\tdiscarded[^]*reason\told[^]*payload\n\{\n {2}"n": 1\n\}\n$/);

    broken.yes = false;
    const paused = await answer(["listeners", "pause", "hear", "--note", "move"], url);
    await answer(["events", "publish", "order.sent"], url);
    const [row] = items(await answer(["listeners", "list"], url));
    const table = await runCli(["listeners", "list", "--book", url]);
    const page = await runCli(["listeners", "show", "hear", "--book", url]);
    const lag = await answer(["listeners", "lag", "hear"], url);
    const skipped = await answer(["listeners", "skip", "hear", "--to", "now"], url);
    const rewound = await answer(["listeners", "rewind", "hear", "--event", "e-1"], url);
    await answer(["listeners", "resume", "hear"], url);
    const which = await refusal(["listeners", "rewind", "hear"], url);
    const twice = await refusal(["listeners", "skip", "hear", "--to", "now", "--event", "e-1"], url);
    const misplaced = await refusal(["listeners", "skip", "hear", "--to", "beginning"], url);
    const replayed = await answer(["events", "replay", "--topic", "order.*", "--dry-run"], url);
    const cleaned = await answer(["retain", "--events", "90d"], url);
    const foreign = await refusal(["listeners", "remove", "hear", "--all-tenants", "--tenant", "default"], url);
    const would = await runCli(["listeners", "remove", "hear", "--book", url]);
    const removed = await answer(["listeners", "remove", "hear", "--apply"], url);

    assert.deepEqual(paused, { name: "hear", paused: true, note: "move" });
    assert.deepEqual([(row?.["paused"] as { note: string } | undefined)?.note, row?.["hosted"]], ["move", true]);
    assert.match(table.stdout, /\nhear\torder\.\*\tlive, paused\t1\t\d+ s\t0\n/);
    assert.match(page.stdout, /hears\torder\.\*\nstate\tlive, paused\npaused\t\S+ move\nlag\t1 event, the oldest/);
    assert.equal(lag["events"], 1);
    assert.deepEqual([skipped["skipped"], rewound["to"]], [1, { event: "e-1" }]);
    assert.match(which[2], /no position given: give to \(beginning\), time or event/);
    assert.match(twice[2], /more than one position given: give to \(now\), time or event/);
    assert.match(misplaced[2], /--to is "beginning": give one of now/);
    assert.deepEqual(foreign.slice(1), ["invalid", "all tenants are meant, so name no tenant"]);
    assert.equal(replayed["count"], 2);
    assert.deepEqual([cleaned["dryRun"], cleaned["events"]], [true, 0]);
    assert.equal(would.stdout, "hear would be removed; remove it with --apply\n");
    assert.deepEqual(removed, { name: "hear", dryRun: false, removed: true, waiting: 0 });
    assert.deepEqual((await refusal(["listeners", "pause", "hear"], url)).slice(0, 2), [4, "not_found"]);
  });

  test(`${backend}: events are followed as they are published`, async (t) => {
    const { book, url } = await openTest(t, backend);
    const args = ["events", "tail", "--topic", "a.*", "--count", "2", "--book", url];
    const [tail, asJson] = [startCli(args), startCli([...args, "--json"])];
    let over = false;
    void Promise.all([tail.ended, asJson.ended]).then(() => (over = true));

    const badTopic = await refusal(["events", "tail", "--topic", "a..b", "--count", "1"], url);
    const badCount = await refusal(["events", "tail", "--count", "some"], url);
    assert.match(`${badTopic[2]} ${badCount[2]}`, /--topic "a\.\.b" has an empty segment.*--count is "some"/);
    for (let n = 0; !over; n++) {
      await book.events.publish("a.b", { n });
      await book.events.publish("c.d", { n });
      await systemClock.nextTurn();
    }
    const [{ stdout: said }, { stdout: lines }] = await Promise.all([tail.ended, asJson.ended]);

    assert.match(said, /^\d{4}-\S+T\S+\ta\.b\t\{"n":\d+\}\n\S+\ta\.b\t.*\n$/);
    const events = lines.trimEnd().split("\n").map(parsed);
    assert.deepEqual(
      events.map(({ topic, publishedAt }) => [topic, typeof publishedAt]),
      [
        ["a.b", "string"],
        ["a.b", "string"],
      ],
    );
  });
}

test("dead letters are redriven by their id and by a filter, at a rate", async (t) => {
  broken.yes = true;
  const { book, url } = await openTest(t, "sqlite", { use: [hear] });
  const worker = await book.startWorker();
  for (const n of [1, 2, 3]) await book.events.publish("order.paid", { n });
  while ((await book.deadLetters.list()).items.length < 3) await worker.idle();
  const [first] = (await book.deadLetters.list()).items;
  broken.yes = false;

  const table = await runCli(["dead-letters", "list", "--limit", "1", "--book", url]);
  const one = await runCli(["dead-letters", "redrive", first?.id ?? "", "--book", url]);
  const others = await runCli(["dead-letters", "redrive", "--error", "RangeError", "--rate", "1000", "--book", url]);
  while ((await book.deadLetters.list()).items.length > 0) await worker.idle();
  const ended = items(await answer(["dead-letters", "list", "--status", "recovered"], url));
  const late = await refusal(["dead-letters", "redrive", first?.id ?? ""], url);

  assert.match(
    table.stdout,
    /^id\tlistener\ttopic\tstatus\ttries\terror\tfailed\n\S+\thear\torder\.paid\tdead\t1\tRangeError: /,
  );
  assert.match(table.stderr, /^There are more: daybook dead-letters list .*--limit 1 --after \S+\n$/);
  assert.match(one.stdout, /^1 dead letter is tried again, by job \S+\n$/);
  assert.equal(others.stdout, "2 dead letters are tried again\n");
  assert.equal(ended.length, 3);
  assert.deepEqual(late.slice(0, 2), [5, "conflict"]);
});

test("events that are old enough are removed when --apply says so, and the list of what stays is right", async (t) => {
  const clock = manualClock({ at: "2026-03-01T00:00:00Z" });
  const { book, url } = await openTest(t, "sqlite", { clock });
  for (const topic of ["a.b", "a.c", "a.d"]) await book.events.publish(topic, null);

  const would = await runCli(["retain", "--events", "1d", "--book", url]);
  const kept = items(await answer(["events", "list"], url));
  const did = await runCli(["retain", "--events", "1d", "--apply", "--book", url]);
  const left = await runCli(["events", "list", "--book", url]);

  assert.equal(would.stdout, "2 events would be removed; remove them with --apply\nby: events 1d\n");
  assert.equal(kept.length, 3);
  assert.match(did.stdout, /^2 events removed\nby: events 1d\n\nremoved so far\n/);
  assert.match(left.stdout, /^id\ttopic\tstatus\tlisteners\tpublished\n\S+\ta\.d\t.*\n$/);
});

test("the page of an event has its payload, its deliveries and the chain it belongs to", async (t) => {
  const { book, url } = await openTest(t, "sqlite", {
    use: [
      listener("relay", {
        on: "first",
        run: (_payload, { book: own }) => own.events.publish("second", { of: 1 }, { id: "e-2" }).then(() => undefined),
      }),
    ],
  });
  await book.events.publish("first", { n: 1 }, { id: "e-1", key: "k" });
  const worker = await book.startWorker();
  while ((await book.events.list()).items.length < 2) await worker.idle();
  await worker.idle();

  const shown = await runCli(["events", "show", "e-2", "--book", url]);
  const root = (await answer(["events", "show", "e-2"], url))["root"] as { id: string; caused: { id: string }[] };

  assert.match(shown.stdout, /event\te-2[^]*depth\t1[^]*payload\n\{\n {2}"of": 1\n\}[^]*deliveries\n/);
  assert.match(shown.stdout, /chain\nfirst {2}e-1\n {2}second {2}e-2 {2}← this one\n$/);
  assert.deepEqual([root.id, root.caused.map(({ id }) => id)], ["e-1", ["e-2"]]);
});
