// npm start: the demo book, its day of history, and how it ends and goes on.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { entity, open, type Book } from "../../src/index.ts";
import { z } from "zod";
import { cleanup, testFolder } from "../support/open-test.ts";
import { compileCache } from "../support/compile-cache.ts";
import { root, runProgram } from "./snippet.ts";

const demo = join(root, "examples/demo");
const Order = entity("order", { schema: z.looseObject({ id: z.string() }), key: "id" });
const Customer = entity("customer", { schema: z.looseObject({ id: z.string() }), key: "id" });

type Started = { readonly link: string; stop(): Promise<{ code: number | null; stderr: string }> };

/** What `npm start` runs, until it has said its link. */
async function start(t: TestContext, cwd: string, args: readonly string[] = []): Promise<Started> {
  const child = run(cwd, ["--port", "0", ...args]);
  cleanup(t, () => child.kill("SIGKILL"));
  const stderr = text(child.stderr);
  let link: string | undefined;
  for await (const line of createInterface(child.stdout)) if ((link = /http\S+\/login\/\S+/.exec(line)?.[0])) break;
  if (link === undefined) throw new Error(`npm start ended: ${await stderr}`);
  return {
    link,
    async stop() {
      child.kill("SIGINT");
      const [code] = (await once(child, "exit")) as [number | null];
      return { code, stderr: await stderr };
    },
  };
}

function run(cwd: string, args: readonly string[]) {
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache, TZ: "UTC" };
  const program = ["--conditions=@daybook/source", join(demo, "main.ts"), ...args];
  return spawn(process.execPath, program, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
}

function looking(url: string): Promise<Book> {
  return open(url, { attach: false, migrate: false });
}

test("npm start makes a day of history, prints a link, ends clean, and goes on where it was", async (t) => {
  const folder = testFolder(t);
  const url = join(folder, ".daybook/demo.db");

  const first = await start(t, folder);
  const logged = await fetch(first.link, { redirect: "manual" });
  const ended = await first.stop();

  assert.ok(logged.status < 400, `the link answers ${logged.status}`);
  assert.deepEqual(ended, { code: 0, stderr: "" });
  const before = await lookAt(url);
  assert.ok(before.runs >= 2000 && before.events >= 500, JSON.stringify(before));
  assert.ok(before.calls >= 150 && before.commits >= 400, JSON.stringify(before));

  const second = await start(t, folder);
  assert.deepEqual(await second.stop(), { code: 0, stderr: "" });
  const after = await lookAt(url);
  assert.equal(after.sessions, before.sessions + 1);
  assert.ok(after.runs >= before.runs && after.runs < before.runs + 100, JSON.stringify([before, after]));
});

type Counts = Readonly<Record<"runs" | "events" | "calls" | "commits" | "sessions", number>>;

/** A book that is whole, and how much there is in it. */
async function lookAt(url: string): Promise<Counts> {
  await using book = await looking(url);
  assert.deepEqual(await book.doctor(), []);
  const [counts] = await book.read(
    (
      tx,
    ) => tx.sql<Counts>`select (select count(*) from daybook_run) as runs, (select count(*) from daybook_event) as events,
      (select count(*) from daybook_call) as calls, (select count(*) from daybook_record_commit) as commits,
      (select count(*) from daybook_session) as sessions`,
  );
  assert.ok(counts !== undefined);
  return counts;
}

test("what the pages of the demo speak of is in its book", async (t) => {
  const url = join(testFolder(t), "demo.db");
  await makeBook(url, ["2026-11-19T14:00:00Z", "1", "0.3"]);
  await using book = await looking(url);

  const { items: versions } = await book.records.history(Order, "o-17");
  assert.ok(versions.length >= 4 && new Set(versions.map(({ actor }) => actor)).size >= 4);
  assert.ok(versions.some(({ reason }) => reason === "only the mug came back"));
  assert.ok((await book.records.find(Customer, "ada")) !== undefined);

  const { items: sessions } = await book.sessions.list();
  assert.deepEqual(sessions.map(({ status }) => status).toSorted(), ["success", "success", "success", "unknown"]);
  const { items: waiting } = await book.jobs.list({ status: "waiting" });
  const waitsFor = new Map(waiting.map(({ name, waitsFor: reason }) => [name, reason]));
  assert.equal(waitsFor.get("transcode-video"), "host");
  assert.equal(waitsFor.get("send-receipt"), "time");

  const { items: schedules } = await book.schedules.list();
  assert.ok(new Set(schedules.map(({ zone }) => zone)).has("Asia/Tokyo"));
  assert.ok(schedules.some(({ name, paused }) => name === "import-suppliers" && paused?.note != null));
  assert.ok(schedules.some(({ name }) => name === "nightly-report"));
  const queues = await book.queues.list();
  assert.ok(queues.some(({ queue, paused }) => queue === "archive" && paused?.note != null));
  assert.ok((await book.deadLetters.groups()).every(({ listener }) => listener === "print-label"));
  for (const tenant of ["acme", "globex", "initech"]) {
    assert.ok((await book.tenant(tenant).jobs.list({ status: "completed" })).items.length > 0, tenant);
  }
});

test("the history of an hour is the same each time it is made", async (t) => {
  const folder = testFolder(t);
  const orders = [];
  for (const name of ["one.db", "two.db"]) {
    await makeBook(join(folder, name), ["2026-11-19T14:00:00Z", "0.05", "2"]);
    await using book = await looking(join(folder, name));
    const { items } = await book.records.query(Order).limit(500).list();
    orders.push(items.map(({ key, value, revision, commit }) => ({ key, value, revision, commit })));
  }

  assert.ok((orders[0]?.length ?? 0) > 10);
  assert.deepEqual(orders[0], orders[1]);
});

async function makeBook(url: string, args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await runProgram(join(demo, "make-book.ts"), join(url, ".."), [url, ...args]);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual((JSON.parse(stdout) as { findings: unknown[] }).findings, []);
}

test("npm start that is interrupted while it makes the book leaves none, and makes one anew that was left unfinished", async (t) => {
  const folder = testFolder(t);
  const book = join(folder, ".daybook/demo.db");
  mkdirSync(join(folder, ".daybook"));
  writeFileSync(book, "the first half of a book");
  writeFileSync(`${book}.unfinished`, "");
  const child = run(folder, ["--port", "0"]);
  cleanup(t, () => child.kill("SIGKILL"));
  const [said] = (await once(child.stdout, "data")) as [Buffer];

  child.kill("SIGINT");
  const [code] = (await once(child, "exit")) as [number | null];

  assert.match(said.toString(), /^Making /);
  assert.equal(code, 0);
  assert.deepEqual(readdirSync(join(folder, ".daybook")), ["laboratory"]);
});

test("npm start -- --empty serves a book with nothing in it", async (t) => {
  const folder = testFolder(t);

  const started = await start(t, folder, ["--empty"]);
  assert.deepEqual(await started.stop(), { code: 0, stderr: "" });

  const { runs, events } = await lookAt(join(folder, ".daybook/empty.db"));
  assert.deepEqual([runs, events], [0, 0]);
});

test("npm start on a port that is taken says what to do, and makes nothing", async (t) => {
  const folder = testFolder(t);
  const other = createServer().listen(0, "127.0.0.1");
  cleanup(t, () => other.close());
  await once(other, "listening");
  const address = other.address();
  const port = String(typeof address === "object" ? address?.port : 0);

  const child: ChildProcess = run(folder, ["--port", port]);
  const said = child.stderr === null ? "" : await text(child.stderr);

  assert.match(said, new RegExp(`The port ${port} is taken.*npm start -- --port`));
  assert.equal(child.exitCode ?? (await once(child, "exit"))[0], 1);
  assert.equal(existsSync(join(folder, ".daybook/demo.db")), false);
});
