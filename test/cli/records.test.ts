import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { entity, relation } from "../../src/index.ts";
import { projectWith } from "../docs/snippet.ts";
import { openTest, testUrl } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number(), place: z.object({ city: z.string() }).optional() }),
  key: "id",
});
const Customer = entity("customer", { schema: z.object({ id: z.string() }), key: "id" });
const Placed = relation("placed", { from: Customer, to: Order });

const module = `
import { z } from "zod";
import { entity } from "daybook";
export const Order = entity("order", { schema: z.object({ id: z.string(), total: z.number() }), key: "id" });
`;

for (const backend of cliBackends) {
  test(`${backend}: records are listed, shown, compared, followed, written and deleted`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Placed], worker: false });
    await book.records.put(
      Order,
      { id: "o-1", total: 40, place: { city: "Oslo" } },
      { actor: "ada", reason: "a sale" },
    );
    await book.records.put(Order, { id: "o-2", total: 7 });
    await book.records.put(Customer, { id: "ada" });
    await book.records.link(Placed, { from: "ada", to: "o-1" });
    await book.records.patch(Order, "o-1", { total: 41 });
    const folder = projectWith(t, { "records.ts": module });
    const settings = { cwd: folder };
    const keys = async (...args: string[]): Promise<unknown[]> =>
      items(await answer(["records", ...args], url)).map((each) => each["key"]);

    assert.deepEqual(
      items(await answer(["records", "types"], url)).map((each) => [each["name"], each["records"]]),
      [
        ["customer", 1],
        ["order", 2],
        ["placed", 1],
      ],
    );
    assert.deepEqual(
      await keys(
        "list",
        "order",
        "--filter",
        "total gte 7",
        "--filter",
        "place.city isNull",
        "--order",
        "total",
        "--desc",
      ),
      ["o-2"],
    );
    assert.deepEqual(await keys("list", "placed", "--filter", "to:total eq 41"), [
      { from: "ada", to: "o-1", instance: "" },
    ]);
    assert.deepEqual(await keys("list", "order", "--as-of", "1"), ["o-1"]);
    const shown = await answer(["records", "show", "order", "o-1", "--as-of", "1"], url);
    assert.deepEqual([shown["revision"], (shown["value"] as { total: number }).total], [1, 40]);
    assert.deepEqual(
      items(await answer(["records", "history", "order", "o-1"], url)).map((each) => each["kind"]),
      ["created", "updated"],
    );
    assert.deepEqual(await keys("diff", "1", "5", "--type", "order"), ["o-1", "o-2"]);
    const changes = await runCli(["records", "diff", "1", "5", "--type", "order", "--book", url]);
    assert.equal(
      changes.stdout,
      "what\ttype\tkey\tfield\tbefore\tafter\nupdated\torder\to-1\ttotal\t40\t41\n" +
        'created\torder\to-2\t\t\t{"id":"o-2","total":7}\n',
    );
    assert.deepEqual(await keys("traverse", "customer", "ada", "--via", "placed"), ["o-1"]);
    const words = await runCli(["commits", "show", "1", "--book", url]);
    assert.match(
      words.stdout,
      /^commit\t1\nwhen\t.*\nwho\tada\nwhy\ta sale\n\nchanges\nwhat\ttype\tkey\tfield\tbefore\tafter\n/,
    );
    const byAda = await answer(
      ["commits", "list", "--actor", "ada", "--since", "2026-01-01T00:00:00Z", "--type", "order"],
      url,
    );
    assert.deepEqual(
      items(byAda).map((each) => each["actor"]),
      ["ada"],
    );
    const shownCommit = await answer(["commits", "show", "1", "--type", "order", "--limit", "1"], url);
    assert.deepEqual([shownCommit["id"], items(shownCommit).length, shownCommit["next"]], [1, 1, null]);
    const twoCommits = await answer(["commits", "list", "--limit", "2"], url);
    const otherCommits = await answer(["commits", "list", "--after", String(twoCommits["next"])], url);
    assert.deepEqual(
      [twoCommits, otherCommits].map((page) => items(page).map((each) => each["id"])),
      [
        [5, 4],
        [3, 2, 1],
      ],
    );
    const firstVersion = await answer(["records", "history", "order", "o-1", "--limit", "1"], url);
    const rest = ["records", "history", "order", "o-1", "--after", String(firstVersion["next"])];
    assert.deepEqual(
      items(await answer(rest, url)).map((each) => each["kind"]),
      ["updated"],
    );
    const elsewhere = await refusal(
      ["records", "history", "order", "o-2", "--after", String(firstVersion["next"])],
      url,
    );
    assert.match(elsewhere[2], /the cursor belongs to another list/);

    const put = ["records", "put", "--from", join(folder, "records.ts"), "order"];
    assert.equal((await answer([...put, '{"id":"o-3","total":1}', "--actor", "bob"], url, settings))["revision"], 1);
    const bad = await runCli([...put, '{"id":"o-3","total":"1"}', "--book", url], settings);
    assert.deepEqual([bad.code, /does not fit the schema/.test(bad.stderr)], [2, true]);
    const unknown = await refusal(
      ["records", "put", "--from", join(folder, "records.ts"), "ordr", "{}"],
      url,
      settings,
    );
    assert.match(unknown[2], /records\.ts does not define the record "ordr": did you mean "order"\?/);
    const linked = await refusal(["records", "delete", "order", "o-1"], url);
    assert.deepEqual(linked.slice(0, 2), [5, "conflict"]);
    assert.equal((await answer(["records", "delete", "order", "o-1", "--unlink"], url))["deleted"], true);
    const typo = await refusal(["records", "list", "ordr"], url);
    assert.match(typo[2], /did you mean "order"\?/);
    const theirs = await refusal(["records", "show", "order", "o-2", "--tenant", "acme"], url);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
    assert.deepEqual(await book.doctor(), []);
    const { rows } = {
      rows: await book.read((tx) => tx.sql<{ n: number }>`select count(*) as n from daybook_record_schema`),
    };
    assert.equal(Number(rows[0]?.n), 4, "only put with its own definition made a schema version");
  });

  test(`${backend}: what was exported is imported again, with a policy for what is there`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Placed], worker: false });
    await book.records.putMany(Order, [
      { id: "o-1", total: 40 },
      { id: "o-2", total: 7 },
    ]);
    await book.records.put(Customer, { id: "ada" });
    await book.records.link(Placed, { from: "ada", to: "o-1" });
    const other = await testUrl(t, backend);
    const { book: copy } = await openTest(t, backend, { url: other, use: [Placed], worker: false });
    const file = join(projectWith(t, {}), "records.jsonl");

    assert.equal((await answer(["records", "export", file], url))["records"], 4);
    await assert.rejects(copy.records.import(['{"type":"ordr","key":"a","value":{}}']), {
      code: "not_found",
      message: /nothing was written yet|did you mean/,
    });
    const lines = readFileSync(file, "utf8").trim().split("\n");
    assert.deepEqual(await copy.records.import(lines, { dryRun: true }), {
      created: 4,
      updated: 0,
      deleted: 0,
      unchanged: 0,
      skipped: 0,
      commits: 0,
      dryRun: true,
    });
    assert.equal(await copy.records.head(), null);
    const done = await copy.records.import(lines, { actor: "import", ifHead: null });
    assert.deepEqual(done, { created: 4, updated: 0, deleted: 0, unchanged: 0, skipped: 0, commits: 1, dryRun: false });
    const again: string[] = [];
    for await (const line of copy.records.export()) again.push(line);
    assert.deepEqual(again.slice(1, -1), lines.slice(1, -1), "the round trip");

    await copy.records.patch(Order, "o-2", { total: 8 });
    await copy.records.delete(Order, "o-1", { unlink: true });
    const stopped = await refusal(["records", "import", file], other);
    const missing = await refusal(["records", "import", `${file}.gone`], other);
    const folder = await refusal(["records", "import", dirname(file)], other);
    const nowhere = await refusal(["records", "export", join(`${file}.gone`, "a")], url);
    assert.deepEqual(missing.slice(0, 2), [4, "not_found"]);
    assert.deepEqual([nowhere[1], /cannot be written: ENOENT/.test(nowhere[2])], ["invalid", true]);
    assert.deepEqual([folder.slice(0, 2), /is a folder: name the file/.test(folder[2])], [[2, "invalid"], true]);
    assert.deepEqual(stopped.slice(0, 2), [5, "conflict"]);
    assert.equal((await copy.records.get(Order, "o-2")).total, 8);
    const skipped = await answer(["records", "import", file, "--on-conflict", "skip"], other);
    assert.deepEqual([skipped["created"], skipped["skipped"], skipped["unchanged"]], [2, 1, 1]);
    const upserted = await answer(["records", "import", file, "--on-conflict", "upsert"], other);
    assert.deepEqual([upserted["updated"], upserted["unchanged"]], [1, 3]);
    assert.equal((await copy.records.get(Order, "o-2")).total, 7);
    await assert.rejects(copy.records.import(['{"type":"order","key":"o-9","value":{"id":"o-8","total":1}}']), {
      code: "invalid",
      message: /line 1: its key is "o-9"/,
    });
    await assert.rejects(copy.records.import(['{"type":"order","key":"o-9","value":{"id":"o-9","id":"o-9"}}']), {
      code: "invalid",
    });
    await assert.rejects(copy.records.import(['{"format":"other","version":2}']), { code: "invalid" });
    writeFileSync(file, lines.slice(0, 3).join("\n"));
    const cut = await refusal(["records", "import", file, "--on-conflict", "skip"], other);
    assert.match(cut[2], /cut off after line 3/);
    const left = ["records", "import", file, "--on-conflict", "skip", "--allow-truncated"];
    assert.equal((await answer(left, other))["unchanged"], 2);
    assert.deepEqual(await copy.doctor(), []);

    const past = join(dirname(file), "past.jsonl");
    const put = await answer(["records", "export", past, "--history"], url);
    assert.deepEqual([put["records"], put["commits"]], [4, 3]);
    const { book: third } = await openTest(t, backend, {
      url: await testUrl(t, backend),
      use: [Placed],
      worker: false,
    });
    const wrote = await third.records.import(readFileSync(past, "utf8").trim().split("\n"));
    assert.deepEqual([wrote.created, wrote.commits, await third.records.head()], [4, 3, 3]);
  });
}
