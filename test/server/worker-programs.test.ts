// Workers in other languages, as programs that speak to a port: the Python library and the script of curl from examples/.
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import type { Book, LeasedJob } from "../../src/index.ts";
import { listen } from "../../src/server/listen.ts";
import { backends, cleanup, type Backend } from "../support/open-test.ts";
import { openServer, type TestServer } from "../support/open-server.ts";

type Served = TestServer & { readonly at: string };

async function serve(t: TestContext, backend: Backend): Promise<Served> {
  const server = await openServer(t, backend, { worker: false });
  const listening = await listen(server.app, { port: 0 });
  cleanup(t, () => listening.close(0));
  return { ...server, at: listening.url };
}

function start(t: TestContext, { at, tokens }: Served, [command, ...args]: readonly [string, ...string[]]): Program {
  const env = { ...process.env, DAYBOOK_SERVER: at, DAYBOOK_TOKEN: tokens.worker, DAYBOOK_WAIT: "1s" };
  const child = spawn(command, args, {
    env: { ...env, DAYBOOK_UNTIL_IDLE: "1", PYTHONPATH: "examples/python", PYTHONDONTWRITEBYTECODE: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  cleanup(t, () => child.kill("SIGKILL"));
  const told: string[] = [];
  createInterface(child.stderr).on("line", (line) => told.push(line));
  return { child, told, lines: createInterface(child.stdout)[Symbol.asyncIterator]() };
}

type Program = { readonly child: ChildProcess; readonly told: string[]; readonly lines: AsyncIterator<string> };

async function ended({ child, told }: Program): Promise<void> {
  const [code] = child.exitCode === null ? ((await once(child, "exit")) as [number]) : [child.exitCode];
  assert.equal(code, 0, told.join("\n"));
}

async function assertEachRanOnce(book: Book, ids: readonly string[], by: string): Promise<void> {
  for (const id of ids) {
    const { status, retriedBy } = await book.jobs.get(id);
    assert.deepEqual([status, retriedBy], ["completed", null]);
    assert.partialDeepStrictEqual(await book.jobs.result(id), { by });
  }
  const { items } = await book.runs.list({ limit: 500 });
  assert.equal(items.length, ids.length);
  assert.deepEqual(await book.doctor(), []);
}

async function enqueueMany(book: Book, name: string, params: unknown): Promise<string[]> {
  const made = [];
  for (let count = 0; count < 100; count++) made.push((await book.jobs.enqueue(name, params)).id);
  return made;
}

const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython) console.log("python3 is not here: what the Python library does is not tested");

// It stands still between its progress and its result for as long as it is stopped.
const slow = `
import sys, time
from daybook_worker import Worker
worker = Worker(*sys.argv[1:3], lease=1.0, wait=0.1)
@worker.job("slow")
def slow(params, job):
    job.progress(0.5)
    print("begun", flush=True)
    time.sleep(0.3)
    return "late"
worker.run(until_idle=True)`;

const hostile = `
import sys
from daybook_worker import Worker
worker = Worker(*sys.argv[1:3], wait=0.1)
@worker.job("nan")
def nan(params, job):
    return {"ratio": float("nan")}
@worker.job("object")
def object_(params, job):
    return object()
@worker.job("exit")
def exit_(params, job):
    sys.exit("enough")
@worker.job("huge")
def huge(params, job):
    return "x" * 3_000_000
worker.run(until_idle=True)`;

for (const backend of backends) {
  if (hasPython) {
    test(`a worker in Python runs a hundred jobs, each once (${backend})`, async (t) => {
      const served = await serve(t, backend);
      const made = await enqueueMany(served.book, "resize", { width: 80 });

      await ended(start(t, served, ["python3", "examples/python/example.py"]));

      await assertEachRanOnce(served.book, made, "python");
    });

    test(`a worker that was stopped past its lease is refused, and the job runs once elsewhere (${backend})`, async (t) => {
      const served = await serve(t, backend);
      const { book, at, tokens } = served;
      const { id } = await book.jobs.enqueue("slow");
      const program = start(t, served, ["python3", "-c", slow, at, tokens.worker]);
      await program.lines.next();

      program.child.kill("SIGSTOP");
      const { session } = await book.workers.attach({ names: ["slow"] });
      const [again] = await book.workers.claim(session, { wait: "30s" });
      await book.workers.settle(again?.lease ?? "", "elsewhere");
      program.child.kill("SIGCONT");
      await ended(program);

      const refused = program.told.filter((line) => line.includes("ran out at"));
      assert.equal(refused.length, 1, program.told.join("\n"));
      assert.equal(await book.jobs.result(id), "elsewhere");
      const { items } = await book.runs.list();
      assert.deepEqual(items.map(({ status }) => status).toSorted(), ["lost", "success"]);
      assert.deepEqual(await book.doctor(), []);
    });

    test(`what a handler in Python cannot return, and one that exits, fails the job with a reason (${backend})`, async (t) => {
      const served = await serve(t, backend);
      const { book, at, tokens } = served;
      const names = ["nan", "object", "exit", "huge"];
      const made = [];
      for (const name of names) made.push((await book.jobs.enqueue(name, {}, { attempts: 1 })).id);

      await ended(start(t, served, ["python3", "-c", hostile, at, tokens.worker]));

      const { items } = await book.runs.list();
      const why = names.map((name) => items.find((run) => run.name === name)?.error?.type);
      assert.deepEqual(why, ["ValueError", "TypeError", "SystemExit", "ServerError"]);
      for (const id of made) assert.equal((await book.jobs.get(id)).status, "failed");
    });
  }

  test(`a worker of curl runs a hundred jobs, each once, whatever their params are called (${backend})`, async (t) => {
    const served = await serve(t, backend);
    const made = await enqueueMany(served.book, "crop", { id: "x", lease: "dbw_forged", session: "y" });

    await ended(start(t, served, ["sh", "examples/curl/worker.sh", "crop"]));

    await assertEachRanOnce(served.book, made, "curl");
    assert.deepEqual(await served.book.jobs.result(made[7] ?? ""), { by: "curl", job: made[7] });
  });

  test(`a forged, a replayed and another tenant's lease are refused over HTTP (${backend})`, async (t) => {
    const { json, ask, tokens, token, book } = await openServer(t, backend, { worker: false });
    const say = { token: tokens.worker };
    const { id } = await book.jobs.enqueue("resize");
    const { session } = await json<{ session: string }>("POST", "/workers/attach", {
      ...say,
      body: { names: ["resize"] },
    });
    const { items } = await json<{ items: LeasedJob[] }>("POST", "/workers/claim", { ...say, body: { session } });
    const [{ lease, run } = { lease: "", run: "" }] = items;
    const forged = `${lease.slice(0, -4)}AAAA`;
    const acme = await token({ role: "worker", tenant: "acme" });
    const other = await token({ role: "worker", tenant: "default" });
    const settle = async (token: string, of: string): Promise<number> =>
      (await ask("POST", "/workers/settle", { token, body: { lease: of, result: 1 } })).status;

    const refused = [await settle(tokens.worker, forged), await settle(tokens.worker, run), await settle(acme, lease)];
    refused.push(await settle(other, lease), await settle(tokens.operate, lease), await settle("", lease));
    const first = await settle(tokens.worker, lease);
    const replayed = await ask("POST", "/workers/settle", { ...say, body: { lease, result: 2 } });

    assert.deepEqual(refused, [404, 404, 404, 403, 403, 401]);
    assert.deepEqual([first, ((await replayed.json()) as { already: boolean }).already], [200, true]);
    assert.equal(await book.jobs.result(id), 1);
    assert.equal((await book.runs.list()).items.length, 1);
  });

  test(`a claim whose client has gone keeps no job, and one that waits ends when the server does (${backend})`, async (t) => {
    const { at, tokens, book, json, app } = await serve(t, backend);
    const { session } = await json<{ session: string }>("POST", "/workers/attach", {
      token: tokens.worker,
      body: { names: ["resize"] },
    });
    const body = JSON.stringify({ session, wait: "30s", lease: "1h" });
    const socket = connect(Number(new URL(at).port), "127.0.0.1");
    socket.write(
      `POST /api/v1/workers/claim HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${tokens.worker}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    // The first request has been read once the second is answered.
    await json("POST", "/workers/claim", { token: tokens.worker, body: { session } });

    socket.resetAndDestroy();
    const { id } = await book.jobs.enqueue("resize");
    const [mine] = await book.workers.claim((await book.workers.attach({ names: ["resize"] })).session, {
      wait: "30s",
    });
    const waiting = json<{ items: LeasedJob[] }>("POST", "/workers/claim", {
      token: tokens.worker,
      body: { session, wait: "30s" },
    });
    await json("POST", "/workers/claim", { token: tokens.worker, body: { session } });
    const began = performance.now();
    await app.close();

    assert.ok(mine?.id === id || (await book.jobs.get(mine?.id ?? "")).retryOf === id);
    assert.deepEqual(await waiting, { items: [] });
    assert.ok(performance.now() - began < 5000);
  });

  test(`a claim that waits gives nothing to a token that was revoked meanwhile (${backend})`, async (t) => {
    const { ask, book } = await openServer(t, backend, { worker: false });
    const { secret: token, id } = await book.tokens.create({ role: "worker", tenant: "default" });
    const { session } = (await (
      await ask("POST", "/workers/attach", { token, body: { names: ["resize"] } })
    ).json()) as {
      session: string;
    };
    const waiting = ask("POST", "/workers/claim", { token, body: { session, wait: "30s" } });
    await ask("POST", "/workers/claim", { token, body: { session } });

    await book.tokens.revoke(id);
    const made = await book.jobs.enqueue("resize");

    assert.equal((await waiting).status, 401);
    assert.equal((await book.jobs.get(made.id)).status, "queued");
  });
}
