import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { job } from "../../src/index.ts";
import { backends, bookUrl, openTest } from "../support/open-test.ts";
import { runCli } from "./run-cli.ts";

const noop = job("noop", { run: () => undefined });
const day = 86_400_000;

for (const backend of backends) {
  test(`${backend}: doctor sends to mend, which says what it would mend, and with --apply mends it`, async (t) => {
    const url = await bookUrl(t, backend);
    const ahead = { ...systemClock, now: () => systemClock.now() + 400 * day };
    const { book } = await openTest(t, backend, { url, use: [noop], clock: ahead });
    const { id } = await book.jobs.enqueue(noop, {}, { in: "1h" });
    await book.close();

    const found = await runCli(["doctor", "--book", url]);
    const dry = await runCli(["mend", "--book", url]);
    const again = await runCli(["mend", "--book", url, "--json"]);
    const done = await runCli(["mend", "--book", url, "--apply"]);
    const after = await runCli(["doctor", "--book", url]);

    assert.equal(found.code, 20);
    assert.match(found.stdout, /D4 does not hold: no job waits longer than its own delay or backoff[^]*daybook mend/);
    assert.match(
      dry.stdout,
      /^1 against "no job waits longer than its own delay or backoff"\n[^]*mend them with --apply\n$/,
    );
    assert.equal((JSON.parse(again.stdout) as { mended: unknown[] }).mended.length, 2);
    assert.match(done.stdout, /mended\n$/);
    assert.deepEqual([after.code, (await runCli(["mend", "--book", url])).stdout], [0, "nothing to mend\n"]);
    const { book: right } = await openTest(t, backend, { url });
    assert.ok((await right.jobs.get(id)).availableAt <= systemClock.now() + day / 24);
  });
}
