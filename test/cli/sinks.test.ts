import assert from "node:assert/strict";
import { test } from "node:test";
import { isoTime } from "../../src/core/time.ts";
import { sink } from "../../src/index.ts";
import { openTest } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

for (const backend of cliBackends) {
  test(`${backend}: sinks by the command line, each tenant its own`, async (t) => {
    const own = sink("own", { on: "order.*", to: () => undefined });
    const { book, url } = await openTest(t, backend, { use: [own] });
    const worker = await book.startWorker();
    await book.events.publish("order.paid", {}, { key: "o-1" });
    await worker.idle();
    const { lastPublishedAt: last } = await book.sinks.get("own");

    const none = items(await answer(["sinks", "list", "--tenant", "acme"], url));
    const paused = await answer(["sinks", "pause", "own", "--note", "they move"], url);
    await book.events.publish("order.sent", {}, { key: "o-1" });
    const [row] = items(await answer(["sinks", "list"], url));
    const table = await runCli(["sinks", "list", "--book", url]);
    const shown = await runCli(["sinks", "show", "own", "--book", url]);
    const lag = await answer(["sinks", "lag", "own"], url);
    const resumed = await answer(["sinks", "resume", "own"], url);
    const unknown = await refusal(["sinks", "pause", "onw"], url);
    const foreign = await refusal(["sinks", "show", "own", "--tenant", "acme"], url);

    assert.deepEqual(none, []);
    assert.deepEqual(
      [paused, resumed],
      [
        { name: "own", paused: true, note: "they move" },
        { name: "own", paused: false },
      ],
    );
    assert.deepEqual(
      [row?.["name"], row?.["lastPublishedAt"], row?.["hosted"], row?.["deadLetters"]],
      ["own", isoTime(last ?? 0), true, 0],
    );
    assert.match(table.stdout, /\nown\torder\.\*\tlive, paused\t1\t\d+ s\t20\S+\t0\n$/);
    assert.match(
      shown.stdout,
      /state\tlive, paused\npaused\t20\S+ they move\nlag\t1 event,[^]*last out\t20[^]*listener\tsink:own/,
    );
    assert.equal(lag["events"], 1);
    assert.deepEqual(unknown, [4, "not_found", 'there is no sink "onw"']);
    assert.deepEqual(foreign, [4, "not_found", 'there is no sink "own"']);
  });
}
