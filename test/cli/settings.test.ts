// daybook config: what holds, and who said so.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Setting } from "../../src/cli/find-settings.ts";
import { projectWith } from "../docs/snippet.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { parsed, runCli } from "./run-cli.ts";

async function settings(
  args: readonly string[],
  given: { cwd: string; env?: Record<string, string> },
): Promise<Map<string, Setting>> {
  const { code, stdout, stderr } = await runCli(["config", ...args, "--json"], given);
  assert.deepEqual([code, stderr], [0, ""]);
  return new Map((parsed(stdout)["settings"] as Setting[]).map((each) => [each.name, each]));
}

function said(all: ReadonlyMap<string, Setting>, name: string): unknown[] {
  return [all.get(name)?.value, all.get(name)?.from];
}

const declared = `
import { event, job, type Config } from "daybook";
export default {
  use: [event("order.paid"), job("greet", { run: () => undefined })],
  apps: { lights: { instances: [{ secret: "canary" }, {}] } },
  server: { books: { shop: "shop.db", home: "postgres://ada:canary@127.0.0.1/home" }, hosts: ["ops.example"] },
  zone: "Europe/Oslo",
  retention: { runs: "2d" },
  calls: { allow: ["10.0.0.0/8"], key: "${"ab".repeat(32)}" },
} satisfies Config;
`;

test("each setting names who said it, and an option wins over the environment", async (t) => {
  const { url } = await openTest(t, "sqlite", { zone: "Asia/Tokyo", retention: { runs: "9d", logs: "1d" } });
  const cwd = projectWith(t, { "daybook.config.ts": declared });
  const env = { DAYBOOK_BOOK: "other.db", DAYBOOK_TENANT: "acme" };

  const here = await settings(["--book", url], { cwd, env });
  const there = await settings(["--book", url], { cwd: testFolder(t), env: { TZ: "UTC" } });

  assert.deepEqual(said(here, "book"), [url, "--book"]);
  assert.deepEqual(said(here, "server"), [null, null]);
  assert.deepEqual(said(here, "tenant"), ["acme", "DAYBOOK_TENANT"]);
  assert.deepEqual(said(here, "schema"), ["daybook", "default"]);
  assert.deepEqual(said(here, "config"), ["daybook.config.ts", "here"]);
  assert.deepEqual(said(here, "zone"), ["Europe/Oslo", "daybook.config.ts"]);
  assert.deepEqual(said(here, "retention.runs"), ["2d", "daybook.config.ts"]);
  // What the commands go by until a program with this config opens the book.
  assert.deepEqual([here.get("retention.runs")?.book, here.get("zone")?.book], ["9d", "Asia/Tokyo"]);
  assert.match(
    (await runCli(["config", "--book", url], { cwd, env })).stdout,
    /^retention\.runs\t2d\tdaybook\.config\.ts; until it is opened so, the book says 9d$/m,
  );
  assert.deepEqual(said(here, "retention.logs"), ["1d", "the book"]);
  assert.equal(here.get("retention.logs")?.book, undefined);
  assert.deepEqual(said(here, "retention.jobs"), ["30d", "default"]);
  assert.deepEqual(said(here, "calls.allow"), [["10.0.0.0/8"], "daybook.config.ts"]);
  assert.deepEqual(said(here, "server.books.shop"), ["shop.db", "daybook.config.ts"]);
  assert.deepEqual(said(here, "server.books.home"), ["postgres://ada:…@127.0.0.1/home", "daybook.config.ts"]);
  assert.deepEqual(said(here, "server.hosts"), [["ops.example"], "daybook.config.ts"]);
  assert.deepEqual(said(here, "apps.lights"), ["2 instances", "daybook.config.ts"]);
  assert.deepEqual(said(here, "declared"), ["order.paid, greet", "daybook.config.ts"]);
  assert.deepEqual(said(there, "zone"), ["Asia/Tokyo", "the book"]);
  assert.deepEqual(said(there, "tenant"), ["default", "default"]);
});

test("no password, token or key is shown, in any form", async (t) => {
  const cwd = projectWith(t, { "daybook.config.ts": declared });
  const env = {
    DAYBOOK_BOOK: "postgres://ada:canary@127.0.0.1:1/shop?sslpassword=canary",
    DAYBOOK_SERVER: "https://ada:canary@daybook.example/shop?token=canary",
    DAYBOOK_TOKEN: "dbk_canary",
    DAYBOOK_KEY: "ca".repeat(32),
  };

  const all = await settings([], { cwd, env });
  const printed = (await runCli(["config"], { cwd, env })).stdout + JSON.stringify([...all]);

  assert.doesNotMatch(printed, /canary|abab|caca/);
  assert.deepEqual(said(all, "token"), ["dbk_…", "DAYBOOK_TOKEN"]);
  assert.deepEqual(said(all, "book"), ["postgres://ada:…@127.0.0.1:1/shop?sslpassword=…", "DAYBOOK_BOOK"]);
  assert.deepEqual(said(all, "server"), ["https://daybook.example/shop", "DAYBOOK_SERVER"]);
  assert.match(String(all.get("key")?.value), /^key [0-9a-f]{8}$/);
  assert.equal(all.get("key")?.from, "daybook.config.ts");
});

test("where nothing is said there is nothing but defaults, and a book that is not there is told", async (t) => {
  const cwd = testFolder(t);

  const none = await settings([], { cwd });
  const missing = await settings(["--book", "none.db", "--token", "@secret"], { cwd });
  const plain = await runCli(["config"], { cwd });

  assert.deepEqual(said(none, "book"), [null, null]);
  assert.deepEqual(said(none, "zone"), ["UTC", "default"]);
  assert.match(String(missing.get("book cannot be read")?.value), /none\.db/);
  assert.deepEqual(said(missing, "token"), ["@secret", "--token"]);
  assert.match(plain.stdout, /^setting\tvalue\tfrom\nbook\t\t\n/);
});
