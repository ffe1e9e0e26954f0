// A backup that is taken under load and opened beside the original does nothing of the original's until it is released.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { command, job, listener, open, schedule, type Book, type OpenOptions } from "../../src/index.ts";
import { target, testKey } from "../calls/target.ts";
import { heldJob } from "../jobs/handlers.ts";
import { cleanup, openTest, testFolder } from "../support/open-test.ts";

async function allOpen(book: Book, kind: "job" | "delivery" | "call"): Promise<string[]> {
  const ids: string[] = [];
  let after: string | undefined;
  do {
    const page = await book.jobs.list({
      kind,
      status: "waiting",
      limit: 500,
      ...(after === undefined ? {} : { after }),
    });
    ids.push(...page.items.map(({ id }) => id));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return ids.toSorted();
}

const sorted = (all: readonly string[]): string[] => all.toSorted();

test("nothing is sent, fired or claimed twice until it is released, and then exactly what was named goes out", async (t) => {
  const ran = { original: [] as string[], copy: [] as string[] };
  const copied = Promise.withResolvers<void>();
  // While the backup is taken no call is answered, so some are under way and others in line.
  const server = await target(t, (_request, response) => void copied.promise.then(() => response.end("ok")));
  const slow = heldJob("slow");
  const optionsFor = (who: keyof typeof ran): OpenOptions => {
    const tells = (_params: unknown, context: { job: { id: string } }): void => void ran[who].push(context.job.id);
    const work = job<{ n: number }>("work", { run: tells });
    const hears = listener("hears", { on: "said", run: (_payload, context) => tells(undefined, context) });
    const often = schedule("often", {
      every: "1s",
      job: work,
      params: { n: 0 },
      overlap: "allow",
      missed: "all",
    });
    return {
      use: [work, hears, often, ...(who === "original" ? [slow.job] : [job("slow", { run: tells })])],
      calls: { key: testKey, allow: ["127.0.0.0/8"] },
      worker: { concurrency: 5 },
    };
  };
  const { book } = await openTest(t, "sqlite", optionsFor("original"));
  const worker = await book.startWorker();
  await book.jobs.enqueue(slow.job, {});
  await slow.whenBegun(1);
  const loaded = Promise.all(
    Array.from({ length: 300 }, async (_none, n) => {
      await book.jobs.enqueue("work", { n });
      await book.events.publish("said", { n });
      await book.calls.submit({ url: server.url });
    }),
  );
  await server.until(1);

  const path = join(testFolder(t), "copy.db");
  await book.backup(path);
  copied.resolve();
  await loaded;
  const copy = await open(path, optionsFor("copy"));
  cleanup(t, () => copy.close());
  assert.deepEqual(await copy.doctor(), []);
  const held = {
    job: await allOpen(copy, "job"),
    delivery: await allOpen(copy, "delivery"),
    call: await allOpen(copy, "call"),
  };
  const { fires } = await copy.schedules.get("often");
  const copyWorker = await copy.startWorker();
  await copyWorker.idle();
  await server.until(300);
  slow.begun[0]?.succeed();
  await book.jobs.result((await book.jobs.list({ name: "slow" })).items[0]?.id ?? "");

  assert.equal((await copy.schedules.get("often")).fires, fires);
  // The original did all of its work once, and the copy none.
  assert.deepEqual(ran.copy, []);
  assert.equal(new Set(ran.original).size, ran.original.length);
  const keys = server.received.map(({ headers }) => headers["idempotency-key"]);
  assert.deepEqual([keys.length, new Set(keys).size], [300, 300]);
  assert.ok(held.job.length > 0 && held.call.length > 0, "nothing was open when the backup was taken");

  await copy.release({ kind: "call" });
  await copyWorker.idle();
  assert.equal(server.received.length, 300 + held.call.length);
  assert.deepEqual(ran.copy, []);

  await copy.release({ kind: "delivery" });
  await copyWorker.idle();
  assert.deepEqual(sorted(ran.copy), held.delivery);

  ran.copy.length = 0;
  await copy.release({ kind: "job" });
  await copyWorker.idle();
  assert.deepEqual(sorted(ran.copy), held.job);
  assert.equal(server.received.length, 300 + held.call.length);
  assert.deepEqual(await copy.doctor(), []);
  await worker.stop();
});

test("a copy leaves the programs of the original alone", async (t) => {
  const folder = testFolder(t);
  const program = command("program", { argv: [process.execPath, "-e", "setTimeout(String, 1e9)"] });
  const { book } = await openTest(t, "sqlite", { use: [program], worker: { grace: 0 } });
  const worker = await book.startWorker();
  const { id } = await book.jobs.enqueue(program, {});
  let pid: number | null = null;
  while (pid === null) {
    const [row] = await book.read((tx) => tx.sql<{ pid: number | null }>`select pid from daybook_run_command`);
    pid = row?.pid ?? null;
  }

  await book.backup(join(folder, "copy.db"));
  const copy = await open(join(folder, "copy.db"), { use: [program] });
  cleanup(t, () => copy.close());
  await (await copy.startWorker()).idle();
  await copy.jobs.recover();

  assert.ok(process.kill(pid, 0), "the program has ended");
  assert.equal((await book.jobs.get(id)).status, "running");
  const explained = await copy.jobs.explain(id);
  assert.equal(explained.reason, "held");
  await worker.stop();
});

test("direct work that was under way is held in a copy, and its queue goes on there", async (t) => {
  const direct = heldJob("direct");
  const ran: string[] = [];
  const plain = job("plain", { run: () => void ran.push("plain") });
  const { book } = await openTest(t, "sqlite", { use: [direct.job, plain] });
  const result = book.jobs.runNow(direct.job, {});
  const { succeed } = await direct.whenBegun(1);
  const path = join(testFolder(t), "copy.db");
  await book.backup(path);

  const copy = await open(path, { use: [direct.job, plain] });
  cleanup(t, () => copy.close());
  await copy.jobs.enqueue(plain, {});
  const worker = await copy.startWorker();
  await worker.idle();

  assert.deepEqual([ran, direct.begun.length], [["plain"], 1]);
  assert.deepEqual(
    (await copy.held()).jobs.map(({ kind, count }) => [kind, count]),
    [["direct", 1]],
  );
  await copy.release({ kind: "direct", drop: true });
  assert.deepEqual([await copy.held(), await copy.doctor()], [{ jobs: [], schedules: [] }, []]);
  succeed("done");
  assert.equal(await result, "done");
});
