// Two servers on one book, as two machines have them, and one that is killed while both are asked.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { open } from "../../src/index.ts";
import { startCli } from "../cli/run-cli.ts";
import { bookUrl, cleanup, testFolder } from "../support/open-test.ts";

type Server = { readonly url: string; kill(): void };

async function serve(t: TestContext, book: string, module: string): Promise<Server> {
  const { child, ended } = startCli(["serve", module, "--book", book, "--port", "0", "--json"]);
  const kill = (): void => void child.kill("SIGKILL");
  cleanup(t, async () => {
    kill();
    await ended;
  });
  if (child.stdout === null) throw new Error("it says nothing");
  for await (const line of createInterface({ input: child.stdout })) {
    return { url: (JSON.parse(line) as { url: string }).url, kill };
  }
  throw new Error(`the server ended: ${(await ended).stderr}`);
}

const callers = 8;
const wanted = 2000;

test("of two servers on one PostgreSQL one is killed under load, and nothing that was acknowledged is lost or done twice", async (t) => {
  const book = await bookUrl(t, "postgres");
  const module = join(testFolder(t), "jobs.ts");
  const library = JSON.stringify(new URL("../../src/index.ts", import.meta.url).href);
  writeFileSync(module, `import { job } from ${library}; export const work = job("work", { run: ({ n }) => n });`);
  const here = await open(book, { worker: false });
  cleanup(t, () => here.close());
  const { secret } = await here.tokens.create({ role: "operate", tenant: "default" });
  const servers = await Promise.all([serve(t, book, module), serve(t, book, module)]);
  const acknowledged = new Map<number, string>();
  let [next, failures, busy] = [0, 0, 0];

  async function post(n: number, { url }: Server): Promise<Response | undefined> {
    const headers = {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      "idempotency-key": `k-${n}`,
    };
    const body = JSON.stringify({ name: "work", params: { n } });
    return fetch(`${url}/api/v1/jobs`, { method: "POST", headers, body }).catch(() => undefined);
  }

  async function enqueue(n: number): Promise<void> {
    for (let turn = n; ; turn++) {
      const response = await post(n, servers[turn % 2] ?? assert.fail());
      if (response?.status === 200) {
        acknowledged.set(n, ((await response.json()) as { id: string }).id);
        if (acknowledged.size === wanted / 4) servers[0].kill();
        return;
      }
      if (response === undefined) failures++;
      // The dead server's key is under way until its session is known to be gone.
      else if (response.status === 409 && response.headers.get("retry-after") !== null) busy++;
      else assert.fail(`${response.status}: ${await response.text()}`);
      await systemClock.sleep(response === undefined ? 5 : 500);
    }
  }

  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (next < wanted) await enqueue(next++);
    }),
  );

  type Row = { readonly id: string; readonly params: string };
  const made = await here.read(
    (tx) => tx.sql<Row>`select id, params from daybook_job where name = 'work' and retry_of is null`,
  );
  const madeBy = new Map(made.map(({ id, params }) => [(JSON.parse(params) as { n: number }).n, id]));
  assert.equal(made.length, wanted, "each was made once");
  assert.deepEqual(
    new Map([...acknowledged].toSorted(([a], [b]) => a - b)),
    new Map([...madeBy].toSorted(([a], [b]) => a - b)),
  );
  assert.ok(failures > 0, "the kill was noticed");
  const again = await post(0, servers[1]);
  if (again === undefined) assert.fail("the other server is gone");
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  assert.equal(((await again.json()) as { id: string }).id, acknowledged.get(0));
  // What the dead server ran is run by the other one.
  await Promise.all([...acknowledged.values()].map((id) => here.jobs.result(id, { timeout: "2m" })));
  assert.deepEqual(await here.doctor(), []);
  t.diagnostic(`${wanted} acknowledged, ${failures} connections broken, ${busy} told to ask again`);
});
