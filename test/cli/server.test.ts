// Every verb on a book and on a server that serves its twin: the same words lead to the same output, in words and as JSON, and to the
// same exit code.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createApp } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { everyVerb, nounNames, type NounName } from "../../src/verbs/table.ts";
import { exampleId, type Verb } from "../../src/verbs/verb.ts";
import { cleanup, openTest, testFolder } from "../support/open-test.ts";
import { fillShop, shop, type Ids } from "../support/shop-world.ts";
import { wordsOf } from "../verbs/words-of.ts";
import { cliBackends, runCli } from "./run-cli.ts";

const key = "ab".repeat(32);

/** A book and the way to it. */
type Side = {
  readonly way: readonly string[];
  /** The same for who may only work. */
  readonly wayOfWorker: readonly string[];
  readonly ids: Ids;
  readonly publish: () => Promise<unknown>;
  readonly url: string;
};

async function twins(t: TestContext, backend: (typeof cliBackends)[number]): Promise<{ onBook: Side; onServer: Side }> {
  const sides: Side[] = [];
  for (const served of [false, true]) {
    const { book, url } = await openTest(t, backend, { use: shop, calls: { key } });
    const ids = await fillShop(book);
    const app = createApp(book);
    const listening = await listen(app, { port: 0 });
    cleanup(t, () => listening.close(0));
    const { secret } = await book.tokens.create({ role: "admin", tenant: null });
    const worker = await book.tokens.create({ role: "worker", tenant: "default" });
    const publish = (): Promise<unknown> => book.events.publish("order.seen", { orderId: "o-17" });
    const way = (token: string): string[] => (served ? ["--server", listening.url, "--token", token] : ["--book", url]);
    sides.push({ way: way(secret), wayOfWorker: way(worker.secret), ids, publish, url });
  }
  const [onBook = assert.fail(), onServer = assert.fail()] = sides;
  return { onBook, onServer };
}

/** The files that the examples name. */
function files(t: TestContext): string {
  const folder = testFolder(t);
  const world = new URL("../support/shop-world.ts", import.meta.url).href;
  for (const name of ["records.ts", "jobs.ts"])
    writeFileSync(join(folder, name), `export * from ${JSON.stringify(world)};`);
  writeFileSync(join(folder, "month.json"), '{"month": 11}');
  writeFileSync(join(folder, "order.json"), '{"orderId": "o-19"}');
  writeFileSync(join(folder, "nightly.json"), '[{"job": "send-receipt", "params": {"orderId": "o-20"}}]');
  return folder;
}

/** What an example is on this side: its id is one that is there, and a server has definitions of its own. */
function lineFor(name: string, example: string, { ids, way }: Side): string[] {
  const [noun = ""] = name.split(".");
  const id = ids[name] ?? ids[noun] ?? exampleId;
  const words = wordsOf(example).map((word) => word.replace(exampleId, id));
  const from = words.indexOf("--from");
  return from === -1 || way[0] === "--book" ? words : words.toSpliced(from, 2);
}

/** What differs between any two books: ids, in the order in which they were first seen, times, and where the book is. */
function plain(side: Side): (text: string) => string {
  const seen = new Map<string, string>();
  const number = (id: string): string => {
    if (!seen.has(id)) seen.set(id, `<id ${seen.size}>`);
    return seen.get(id) ?? "";
  };
  const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
  return (text) =>
    text
      .replaceAll(side.way.join(" "), "<way>")
      .replaceAll(side.wayOfWorker.join(" "), "<way>")
      .replaceAll(side.way.slice(0, 2).join(" "), "<way>")
      .replaceAll(side.url, "<book>")
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.-]\d{3}(?:Z|[+-]\d\d:\d\d)?/g, "<time>")
      .replaceAll(uuid, number)
      .replaceAll(/\bdbk_[\w-]+|(?<="(?:id|name)": "|\t)[0-9a-z]{10}(?=["\n])/g, "<token>")
      .replaceAll(
        /("(?:\w+Ms|seconds|bytes|walBytes|p50|p95|p99|mean|max|min|next)": )(?:[\d.]+|"[\w-]{60,}")/g,
        "$1<n>",
      )
      .replaceAll(/--after [\w-]{60,}/g, "--after <cursor>")
      .replaceAll(/\b\d+(?:\.\d+)? ?(?:ms|s|KiB|MiB|B)\b/g, "<n>");
}

/** JSON with its fields in one order: what an operation kept comes back in that of their names. */
function inOrder(text: string): string {
  if (!text.startsWith("{")) return text;
  try {
    return JSON.stringify(sorted(JSON.parse(text)), null, 2);
  } catch {
    // Lines, or words.
    return text;
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, inside]) => [name, sorted(inside)] as const);
  return Object.fromEntries(fields.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** What these say is also who asked and by which way: a server tells of a tenant only what is the tenant's. */
const ofTheVisit: ReadonlySet<string> = new Set(["sessions.list", "tokens.list", "audit.list", "book.metrics"]);

/** Numbers of the process itself, which go on while they are read. */
const measured = /^(?:info|runs (?:summary|overview|slow))/;

/** The examples that follow what happens, which is to happen meanwhile. */
const following = new Map([
  ["events.tail", ["--topic", "order.seen", "--count", "1"]],
  ["records.watch", ["--after", "1", "--count", "1"]],
]);

async function say(name: string, verb: Verb, side: Side, more: readonly string[], cwd: string): Promise<string[]> {
  const clean = plain(side);
  const said: string[] = [];
  for (const example of verb.examples) {
    const line = lineFor(name, example, side);
    const words = following.has(name)
      ? [...line.slice(0, name === "events.tail" ? 2 : 3), ...(following.get(name) ?? [])]
      : line;
    const way = verb.role === "worker" ? side.wayOfWorker : side.way;
    const running = runCli([...words, ...way, ...more], { cwd, env: { DAYBOOK_KEY: key, TZ: "UTC" } });
    let isOver = false;
    void running.finally(() => (isOver = true));
    while (name === "events.tail" && !isOver) await side.publish();
    const { code, stdout, stderr } = await running;
    const heard = ofTheVisit.has(name) ? stdout.slice(0, 6) : `${clean(inOrder(stdout))}${clean(stderr)}`;
    const text = `${example} ${more.join(" ")}: ${code}\n${heard}`;
    said.push(measured.test(example) ? text.replaceAll(/\d+(?:\.\d+)?/g, "<n>") : text);
  }
  return said;
}

for (const backend of cliBackends) {
  test(`${backend}: every verb that is not local says the same on a server as on a book`, async (t) => {
    const { onBook, onServer } = await twins(t, backend);
    const cwd = files(t);
    const differs: [onBook: string, onServer: string][] = [];
    let compared = 0;

    for (const [name, verb] of await everyVerb()) {
      if (verb.local === true) continue;
      for (const more of [[], ["--json"]]) {
        const here = await say(name, verb, onBook, more, cwd);
        const there = await say(name, verb, onServer, more, cwd);
        for (const [index, text] of here.entries()) if (text !== there[index]) differs.push([text, there[index] ?? ""]);
        compared += here.length;
      }
    }

    assert.deepEqual(differs, []);
    assert.ok(compared > 2 * 120);
    assert.deepEqual(
      Object.keys(onBook.ids).filter((each) => onBook.ids[each] === "" || !isNoun(each)),
      [],
    );
  });
}

function isNoun(name: string): boolean {
  return nounNames.includes(name.split(".")[0] as NounName);
}
