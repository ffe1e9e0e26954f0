import assert from "node:assert/strict";
import { test } from "node:test";
import { views } from "../../src/open/migrations.ts";
import { openTest } from "../support/open-test.ts";
import { answer, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

const names = views.map(({ name }) => name);

for (const backend of cliBackends) {
  test(`${backend}: the views are made, made once, and dropped`, async (t) => {
    const { book, url } = await openTest(t, backend);

    const made = await answer(["views", "create"], url);
    const again = await runCli(["views", "create", "--book", url]);
    const found = await book.read((tx) => tx.sql`select id from sessions`);
    const gone = await answer(["views", "drop"], url);
    const none = await runCli(["views", "drop", "--book", url]);

    assert.deepEqual([made, gone], [{ created: names }, { dropped: names }]);
    assert.deepEqual(found, [{ id: book.sessionId }]);
    assert.equal(again.stdout, "The views are there and up to date.\n");
    assert.equal(none.stdout, "There are no such views.\n");
  });

  test(`${backend}: a name that is taken is refused, and no view is made`, async (t) => {
    const { book, url } = await openTest(t, backend);
    await book.write((tx) => tx.sql`create table events (title text)`);

    const [exit, code, message] = await refusal(["views", "create"], url);

    assert.deepEqual([exit, code], [5, "conflict"]);
    assert.match(message, /"events".*no view was made/);
    assert.deepEqual(await answer(["views", "drop"], url), { dropped: [] });
  });
}
