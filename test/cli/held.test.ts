import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { manualClock } from "../../src/index.ts";
import { setLimit } from "../support/limit.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { answer } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";
import { projectWith } from "../docs/snippet.ts";

test("a backup says what it holds, and drops or releases what is named", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  await book.jobs.enqueue("mail", {});
  await book.tenant("acme").jobs.enqueue("mail", {});
  await book.schedules.create("hourly", { cron: "0 * * * *", job: "mail", params: {} });
  const copy = join(testFolder(t), "copy.db");
  await answer(["backup", copy], url);

  const words = await runCli(["held", "--book", copy]);
  const schedules = await runCli(["schedules", "list", "--book", copy]);
  const ofAcme = await answer(["held", "--tenant", "acme"], copy);
  const dry = await answer(["release", "--drop", "--tenant", "acme"], copy);
  const dropped = await answer(["release", "--drop", "--tenant", "acme", "--apply"], copy);
  const would = await runCli(["release", "--dry-run", "--book", copy]);
  const released = await runCli(["release", "--book", copy]);

  const head = "tenant\tkind\theld\toldest made\tnewest made\n";
  assert.match(words.stdout, new RegExp(`^${head}acme\tjob\t1\t\\S+Z\t\\S+Z\ndefault\tjob\t1\t`));
  assert.match(words.stdout, /\ndefault\t\(schedules\)\t1\t\t\n$/);
  assert.match(schedules.stdout, /^hourly\t.*\theld: this book is a copy$/m);
  const [held] = ofAcme["jobs"] as { tenant: string; count: number; oldestAt: string }[];
  assert.deepEqual([held?.tenant, held?.count, ofAcme["schedules"]], ["acme", 1, []]);
  assert.match(held?.oldestAt ?? "", /^\d{4}-\d\d-\d\dT/);
  assert.deepEqual(dry, { dryRun: true, dropped: true, jobs: 1, behind: 0, schedules: 0 });
  assert.deepEqual(dropped, { dryRun: false, dropped: true, jobs: 1, behind: 0, schedules: 0 });
  assert.equal(would.stdout, "1 job and 1 schedule would be released\n");
  assert.equal(released.stdout, "1 job and 1 schedule were released\n");
  assert.equal((await runCli(["held", "--book", copy])).stdout, head);
  assert.equal((await runCli(["held", "--book", url])).stdout, head);
});

test("a file that was copied by other means is marked as a copy", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const { id } = await book.jobs.enqueue("mail", {});
  await book.close();
  const copy = join(testFolder(t), "copy.db");
  copyFileSync(url, copy);

  const marked = await answer(["mark-as-copy"], copy);
  const explained = await answer(["jobs", "explain", id], copy);

  assert.equal((marked["jobs"] as { count: number }[])[0]?.count, 1);
  assert.equal(explained["reason"], "held");
});

test("a worker on a copy says that it holds something", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  await book.jobs.enqueue("greet", {});
  await book.close();
  await answer(["mark-as-copy"], url);
  const folder = projectWith(t, {
    "jobs.ts": 'import { job } from "daybook"; export default [job("greet", { run: () => undefined })];',
  });
  const { child, ended } = startCli(["run", join(folder, "jobs.ts"), "--book", url, "--grace", "1s"], {
    env: { NODE_OPTIONS: "--conditions=@daybook/source" },
  });
  let said = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    const before = said.includes("is a copy");
    said += String(chunk);
    if (!before && said.includes("is a copy")) child.kill("SIGTERM");
  });

  const { code } = await ended;

  assert.equal(code, 0);
  assert.match(said, /! this book is a copy: 1 job and 0 schedules are held \(daybook held, daybook release\)/);
});

for (const backend of cliBackends) {
  test(`${backend}: a book is marked as a copy, and its sessions have ended`, async (t) => {
    setLimit(t, "beatMs", 100);
    // By its own clock, which stands still, its session is silent, as that of the original is in a copy.
    const { book, url } = await openTest(t, backend, { worker: false, clock: manualClock() });
    await book.jobs.enqueue("mail", {});

    await answer(["mark-as-copy"], url);

    assert.equal((await book.sessions.list()).items.at(-1)?.status, "unknown");
    assert.equal((await book.held()).jobs[0]?.count, 1);
  });
}
