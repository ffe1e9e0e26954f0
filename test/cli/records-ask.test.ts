// Questions, changes and pages of records on the command line.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { Command } from "commander";
import { z } from "zod";
import { moreOf } from "../../src/cli/more-line.ts";
import { entity, relation } from "../../src/index.ts";
import { projectWith } from "../docs/snippet.ts";
import { openTest } from "../support/open-test.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";

const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number(), note: z.string().optional() }),
  key: "id",
});
const Customer = entity("customer", { schema: z.object({ id: z.string(), country: z.string() }), key: "id" });
const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });

const module = `
import { z } from "zod";
import { entity, relation } from "daybook";
export const Order = entity("order", {
  schema: z.object({ id: z.string(), total: z.number(), note: z.string().optional() }),
  key: "id",
  search: ["note"],
});
export const Customer = entity("customer", { schema: z.object({ id: z.string(), country: z.string() }), key: "id" });
export const Placed = relation("placed", { from: Customer, to: Order, schema: z.object({ at: z.number() }) });
`;

test("the command under a page names the server, unless its address holds a password", () => {
  const hintOf = (book: string): string | undefined => {
    const list = new Command("list").option("--book <url>").action(() => undefined);
    list.parse(["--book", book], { from: "user" });
    return moreOf(list, { next: "abc" });
  };

  assert.match(String(hintOf("postgres://db.example/shop")), /--book postgres:\/\/db\.example\/shop --after abc$/);
  assert.match(String(hintOf("postgres://ada@db.example/shop")), /--book postgres:\/\/ada@/);
  for (const address of ["postgres://ada:secret@db.example/shop", "postgres:///shop?password=secret", "postgres://["]) {
    assert.equal(hintOf(address), "There are more: daybook --after abc");
  }
});

for (const backend of cliBackends) {
  test(`${backend}: records are counted, summed up by group and blamed`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Placed], worker: false });
    await book.write(async ({ records }) => {
      await records.putMany(Customer, [
        { id: "ada", country: "NO" },
        { id: "bob", country: "PE" },
      ]);
      for (const [id, total, from] of [
        ["o-1", 10, "ada"],
        ["o-2", 9, "ada"],
        ["o-3", 100, "bob"],
      ] as const) {
        await records.put(Order, { id, total });
        await records.link(Placed, { from, to: id }, { at: 1 });
      }
    });
    await book.records.patch(Order, "o-1", { total: 11 }, { actor: "ada", reason: "a slip" });
    const numbers = async (...args: string[]): Promise<unknown> =>
      items(await answer(["records", "aggregate", ...args], url));

    assert.deepEqual(await answer(["records", "count", "order", "--filter", "total gt 9"], url), { count: 2 });
    assert.deepEqual(await answer(["records", "count", "order", "--as-of", "0"], url), { count: 0 });
    assert.deepEqual(await numbers("order", "count", "sum:total", "--as-of", "1"), [{ count: 3, "sum:total": 119 }]);
    const byCountry = ["placed", "sum:to:total", "--by", "from:country", "--order", "sum:to:total", "--desc"];
    assert.deepEqual(await numbers(...byCountry), [
      { "from:country": "PE", "sum:to:total": 100 },
      { "from:country": "NO", "sum:to:total": 20 },
    ]);
    assert.deepEqual(await numbers(...byCountry, "--limit", "1"), [{ "from:country": "PE", "sum:to:total": 100 }]);
    const table = await runCli(["records", "aggregate", ...byCountry, "--book", url]);
    assert.equal(table.stdout, "from:country\tsum:to:total\nPE\t100\nNO\t20\n");
    assert.match(
      (await refusal(["records", "aggregate", "order", "total"], url))[2],
      /no number to compute: give count/,
    );
    assert.match((await refusal(["records", "aggregate", "order", "count", "--desc"], url))[2], /by what to group/);
    const oneName = await refusal(["records", "aggregate", "order", "count", "--by", "count"], url);
    assert.match(oneName[2], /"count" is a number and a field to group by/);
    const blamed = items(await answer(["records", "blame", "order", "o-1"], url));
    assert.deepEqual(
      blamed.map((each) => [each["field"], each["commit"], each["actor"], each["reason"]]),
      [
        ["id", 1, null, null],
        ["total", 2, "ada", "a slip"],
      ],
    );
  });

  test(`${backend}: records are patched, linked, unlinked, restored and searched with their definitions`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Placed], worker: false });
    await book.records.put(Order, { id: "o-1", total: 10, note: "milk and bread" });
    await book.records.put(Customer, { id: "ada", country: "NO" });
    const settings = { cwd: projectWith(t, { "records.ts": module }) };
    const from = ["--from", join(settings.cwd, "records.ts")];
    const done = (...args: string[]): Promise<Record<string, unknown>> => answer(["records", ...args], url, settings);
    const refused = async (...args: string[]): Promise<unknown> =>
      (await refusal(["records", ...args], url, settings))[2];

    const patched = await done("patch", "order", "o-1", "--fields", '{"total":11}', "--remove", "note", ...from);
    assert.deepEqual([patched["revision"], await book.records.get(Order, "o-1")], [2, { id: "o-1", total: 11 }]);
    assert.match(String(await refused("patch", "order", "o-1", "--fields", '{"total":"x"}', ...from)), /schema/);
    assert.match(String(await refused("patch", "order", "o-1", ...from)), /nothing to change/);
    assert.equal((await done("restore", "order", "o-1", "--to", "1", "--actor", "ada"))["revision"], 3);
    assert.equal((await book.records.get(Order, "o-1")).note, "milk and bread");
    assert.equal((await done("link", "placed", "ada", "o-1", '{"at":5}', ...from))["revision"], 1);
    assert.match(String(await refused("link", "order", "ada", "o-1", ...from)), /is an entity/);
    assert.deepEqual(await done("unlink", "placed", "ada", "o-1"), { unlinked: true });
    assert.deepEqual(await done("unlink", "placed", "ada", "o-1"), { unlinked: false });
    const found = items(await done("search", "order", "Bread milk", ...from));
    assert.deepEqual(
      found.map(({ key }) => key),
      ["o-1"],
    );
    assert.deepEqual(items(await done("search", "order", "wine", ...from)), []);
    assert.deepEqual(await book.doctor(), []);
  });

  test(`${backend}: a watch says what happened after a commit, and what happens`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Order], worker: false });
    await book.records.put(Order, { id: "o-1", total: 10 });
    await book.records.put(Order, { id: "o-2", total: 1 });

    const past = ["records", "watch", "order", "--filter", "total gt 5", "--after", "0", "--count", "1"];
    const seen = await answer(past, url);
    const { child, ended } = startCli([...past.with(-1, "2"), "--book", url]);
    child.stdout?.once("data", () => void book.records.patch(Order, "o-1", { total: 2 }));
    const words = await ended;

    assert.deepEqual(
      [seen["commit"], seen["changes"]],
      [1, [{ kind: "added", key: "o-1", revision: 1, value: { id: "o-1", total: 10 } }]],
    );
    assert.deepEqual([words.code, words.stderr], [0, ""]);
    const lines = words.stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t").slice(1));
    assert.deepEqual(lines, [
      ["1", "added", "o-1", '{"id":"o-1","total":10}'],
      ["3", "removed", "o-1", '{"id":"o-1","total":2}'],
    ]);
  });

  test(`${backend}: the command under a page gives the next one when a shell runs it as it stands`, async (t) => {
    const { book, url } = await openTest(t, backend, { use: [Placed], worker: false });
    const [first, second] = ['--it\'s "1"', '--it\'s "2"'] as const;
    await book.records.putMany(Order, [
      { id: first, total: 10, note: "a $HOME `b`" },
      { id: second, total: 10, note: "a $HOME `b`" },
    ]);
    await book.records.patch(Order, first, { total: 11 });
    await book.records.patch(Order, first, { total: 12 });
    const pages: readonly (readonly string[])[] = [
      ["records", "list", "order", "--filter", 'note eq "a $HOME `b`"', "--order", "total", "--desc", "--limit=1"],
      ["records", "list", "order", "--filter=note isNotNull", "--as-of", "1", "--limit", "1"],
      ["records", "history", "order", "--limit", "1", "--", first],
      ["records", "diff", "0", "3", "--type", "order", "--limit", "1"],
      ["commits", "list", "--limit", "2"],
    ];

    for (const args of pages) {
      const page = await runCli([...args.slice(0, 2), "--book", url, ...args.slice(2)]);
      const [, hint = ""] = /^There are more: (daybook .*)\n$/.exec(page.stderr) ?? [];
      const read = execFileSync("sh", ["-c", `daybook() { printf '%s\\0' "$@"; }; ${hint}`], { encoding: "utf8" });
      const next = await runCli(read.split("\0").slice(0, -1), { env: { DAYBOOK_BOOK: url } });

      assert.deepEqual([next.code, next.stderr.replace(/^There are more: .*\n$/, "")], [0, ""], hint);
      assert.notEqual(next.stdout, page.stdout, hint);
    }
  });
}
