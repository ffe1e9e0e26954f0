import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { commentPrograms } from "./comment-programs.ts";
import { projectWith, root, runProgram, snippetsOf } from "./snippet.ts";

const examples = join(root, "examples");

const ran = new Map<string, ReturnType<typeof runProgram>>();

/** Each of them runs once, in a folder of its own, whoever asks first. */
function runExample(t: TestContext, name: string): ReturnType<typeof runProgram> {
  const running = ran.get(name) ?? runProgram(join(examples, name), testFolder(t));
  ran.set(name, running);
  return running;
}

test("every example runs and ends by itself", async (t) => {
  for (const name of readdirSync(examples).filter((each) => each.endsWith(".ts"))) {
    const { code, stdout, stderr } = await runExample(t, name);

    assert.deepEqual([code, stderr], [0, ""], name);
    // The shop only says what it is made of: `npm start` serves it.
    assert.equal(stdout === "", name === "shop.ts", name);
  }
});

test("the tour shows a transaction, jobs, a schedule, a call, records, apps, a lost process, a backup and the doctor", async (t) => {
  const { stdout } = await runExample(t, "tour.ts");

  assert.match(stdout, /400 cents went from ada to bob: ada has 600, bob has 400/);
  assert.match(stdout, /5000 were refused as invalid, .*: ada has 600, bob has 400/);
  assert.match(stdout, /1,000 at once: \d+ ms; the table holds 1100 rows/);
  assert.match(stdout, /tried again when it fails: failed \(nobody was at home\), then completed/);
  assert.match(stdout, /in Oslo at \d{4}-\d\d-\d\dT07:00/);
  assert.match(stdout, /It ran because somebody triggered it by hand/);
  assert.match(stdout, /the carrier answered 503 "busy", then 200 "on its way": succeeded/);
  assert.match(stdout, /2 of them: in the shop once, in the van now/);
  assert.match(stdout, /somebody moves: the light is on in the hall/);
  assert.match(stdout, /2 instances; "on" is turnOn at \S*home\/lights\.ts:\d+/);
  assert.match(stdout, /after SIGKILL its session is "unknown"/);
  assert.match(stdout, /\d+ bytes, in which ada has 600, bob has 400/);
  assert.match(stdout, /all is well/);
});

test("a day in the simulated home: blinds with the sun, lights with motion, presence after a while", async (t) => {
  const { stdout } = await runExample(t, "home.ts");

  const days = stdout.split("\n").filter((line) => /^\d\d:\d\d /.test(line));
  assert.deepEqual(
    days.map((line) => line.slice(7)),
    [
      "somebody is home, dark, blinds closed",
      "somebody is home, dark, blinds open",
      "somebody is home, hall, blinds open",
      "somebody is home, dark, blinds open",
      "somebody is home, kitchen, blinds open",
      "nobody is home, dark, blinds open",
    ],
  );
  assert.match(stdout, /lights: 2 instances, 6 listeners, 0 schedules/);
  assert.match(stdout, /1 run of "move", success/);
});

test("the example of a webhook is sent twice and succeeds", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "webhook.ts");

  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    ...["request 1: signed true", "request 2: signed true", "succeeded after 2 attempts: thank you"],
  ]);
});

test("the example of events shows a dead letter and its redrive", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "events.ts");

  assert.deepEqual([code, stderr], [0, ""]);
  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual(
    new Set(lines.slice(0, 2)),
    new Set(["heard parcel.made, 1 after the first", "heard event.dead_letter, 1 after the first"]),
  );
  assert.deepEqual(lines.slice(2), [
    "order.paid is dead_lettered: print dead_lettered, ship acked",
    "printed",
    "1 redriven, order.paid is acked",
  ]);
});

test("the first job fails once, is finished once, and what is delayed says so", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "first-job.ts");

  const [failed, , delayed, completed, , receipt] = stdout.split("\n");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(failed ?? "", /^send-receipt, attempt 1: failed\. .* Error: the mail server did not answer\.$/);
  assert.match(delayed ?? "", /^ask-for-review, attempt 1: waiting\. It waits until .* it was enqueued for then\.$/);
  assert.match(completed ?? "", /^send-receipt, attempt 2: completed\. Its run ended as success/);
  assert.equal(receipt, "The receipt of o-17 was sent once.");
});

test("the pipeline waits for a retry, completes, and makes another job from a template", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "pipeline.ts");

  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.split("\n"), [
    ...["fetched the orders of May", "sent the report of May to ada", "completed: 2 of 2 jobs"],
    ...["sent the report of June to bob", "{ sentTo: 'bob' }", ""],
  ]);
});

test("the tour shows a job that is tried again and one that waits", async (t) => {
  const { stdout } = await runExample(t, "tour.ts");

  assert.match(stdout, /tried again when it fails: failed \(nobody was at home\), then completed/);
  assert.match(stdout, /A job that has not run says why\n +It waits until /);
});

test("the motion light goes on at once and off after five quiet minutes", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "motion-light.ts");

  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    "18:00 the light is on",
    "18:09 the light is off",
    "light-on: motion.hall where moving = true and isDark; heard 4, ran 1",
    "light-off: motion.hall where moving = false for 5m; heard 4, ran 1",
    "diary: light.hall.changed; heard 2, ran 2",
    "4 runs are in the book: diary, diary, light-off, light-on",
  ]);
});

test("the example of records tells what was and what is, without a cast", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "records.ts");

  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^o-17 was open and is paid\n1 paid order, 40 in all; 1 from Norway\n/);
  assert.doesNotMatch(readFileSync(join(root, "examples/records.ts"), "utf8"), /\bas (?!const)|\bany\b/);
});

test("the example of a schedule fires three slots and is over", async (t) => {
  const { code, stdout, stderr } = await runExample(t, "schedule.ts");

  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(lines[0] ?? "", /^the next slot is \d\d\.000Z$/);
  assert.deepEqual(lines.slice(1), [
    ...[1, 2, 3].map((count) => `beat ${count} for a slot of "every-second", decided as fired`),
    ...["3 decisions, and it is over", "It ran: the slot was fired on time."],
  ]);
});

test("notes are still there the next time", async (t) => {
  const folder = testFolder(t);

  await runProgram(join(examples, "notes.ts"), folder, ["buy milk"]);
  const { stdout } = await runProgram(join(examples, "notes.ts"), folder, ["it's done"]);

  assert.match(stdout, /^1 .* buy milk\n2 .* it's done\n$/);
});

test("the example of docs/errors.md runs", async (t) => {
  const [errors = ""] = snippetsOf(readFileSync(join(root, "docs/errors.md"), "utf8"));
  const folder = projectWith(t, { "errors.ts": errors });

  const none = await runProgram("errors.ts", folder);

  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "There is no book yet.\n", ""]);
});

test("the examples in the doc comments of public functions run", async (t) => {
  const programs = commentPrograms();
  const folder = projectWith(t, programs);
  // One after the other in one process, because loading the library takes far longer than any of them.
  const names = Object.keys(programs);
  const all = names.map((name) => `await import("./${name}");\nconsole.log("${name}");\n`).join("");
  writeFileSync(join(folder, "all.ts"), all);

  const { code, stdout, stderr } = await runProgram("all.ts", folder);

  assert.ok(names.length >= 4, "the examples were not found");
  const done = names.filter((name) => stdout.split("\n").includes(name));
  const next = names[done.length] ?? "";
  assert.deepEqual([code, stderr, done], [0, "", names], `${next}:\n${programs[next]}`);
});
