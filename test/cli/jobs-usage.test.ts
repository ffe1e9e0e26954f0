import assert from "node:assert/strict";
import { test } from "node:test";
import { errorCodes, type ErrorCode } from "../../src/index.ts";
import { openTest, testFolder } from "../support/open-test.ts";
import { refusal } from "./answer-of.ts";
import { runCli } from "./run-cli.ts";

const groups = {
  jobs: [
    ...["list", "show", "explain", "place", "result", "enqueue", "run-now", "cancel", "retry"],
    ...["move", "prioritise", "edit", "pause", "resume"],
  ],
  groups: ["list", "show", "create", "add", "cancel", "wait"],
  templates: ["list", "show", "create", "edit", "archive", "restore"],
  queues: ["list", "pause", "resume", "limit", "normalise"],
  reservations: ["list"],
  runs: ["list", "show", "summary", "overview", "slow", "pin", "unpin"],
};
const commands = [
  "run",
  "retain",
  ...Object.entries(groups).flatMap(([group, verbs]) => verbs.map((verb) => `${group} ${verb}`)),
];

test("the help of every command about jobs shows the global options and an example", async () => {
  const shown = await Promise.all(commands.map((command) => runCli([...command.split(" "), "--help"])));

  for (const [index, { code, stdout }] of shown.entries()) {
    const command = commands[index] ?? "";
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`Usage: daybook ${command}`));
    assert.match(stdout, /--book <url>/);
    assert.match(stdout, new RegExp(`\\$ (?:echo .* )?daybook ${command}`));
  }
});

test("a group without a command shows its commands and is wrong usage", async () => {
  for (const [group, verbs] of Object.entries(groups)) {
    const { code, stdout, stderr } = await runCli([group]);

    assert.deepEqual([code, stdout], [2, ""]);
    for (const verb of verbs) assert.match(stderr, new RegExp(`\n {2}${verb} `));
  }
});

const id = "019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e";

const slips: readonly (readonly [args: string, code: ErrorCode, says: RegExp])[] = [
  ["jobs lst", "invalid", /unknown command 'lst' \(Did you mean list\?\)/],
  ["job list", "invalid", /unknown command 'job' \(Did you mean jobs\?\)/],
  ["jobs list --statu failed", "invalid", /unknown option '--statu' \(Did you mean --status\?\)/],
  [
    "jobs list --status faild",
    "invalid",
    /--status is "faild": did you mean "failed"\? Give one of waiting, queued, running/,
  ],
  ["jobs list --limit 0", "invalid", /--limit is 0: give a whole number from 1 to 500/],
  ["jobs list --after yesterday", "invalid", /"yesterday" is not a cursor: give "next" of the page before/],
  ["jobs show", "invalid", /missing required argument 'id'/],
  [`jobs show ${id}`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs explain ${id}`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs cancel ${id}`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs retry ${id}`, "not_found", new RegExp(`there is no job ${id}`)],
  ["jobs enqueue", "invalid", /give the name of the job, or a template/],
  ["jobs enqueue x --template y", "invalid", /give a name or a template, not both/],
  ["jobs enqueue --template weekly", "not_found", /there is no template "weekly"/],
  ["jobs enqueue x --params {a", "invalid", /--params is not valid JSON: "a" is unexpected \(position 1\)/],
  ["jobs enqueue x --params {}{}", "invalid", /--params is not valid JSON: "\{" is unexpected \(position 2\)/],
  ["jobs enqueue x --params @gone.json", "not_found", /there is no file "gone\.json" to read --params from/],
  ["jobs enqueue x --params @.", "invalid", /--params cannot be read from "\.": EISDIR/],
  ["jobs enqueue x --priority 1.5", "invalid", /--priority is "1\.5": give a whole number/],
  ["jobs enqueue x --priority 1001", "invalid", /--priority is 1001: give a whole number from -1000 to 1000/],
  ["jobs enqueue x --at tomorrow", "invalid", /--at is "tomorrow", which is not a time/],
  ["jobs enqueue x --in -5s", "invalid", /--in is "-5s", which is not a duration/],
  ["jobs enqueue x --in 5m --at 2050-01-01T00:00:00Z", "invalid", /give "at" or "in", not both/],
  ["jobs enqueue x --key k --key-scope ever", "invalid", /--key-scope is "ever", which is not a duration/],
  [
    "jobs enqueue x --key k --on-conflict fight",
    "invalid",
    /--on-conflict is "fight": give one of keep, replace, error/,
  ],
  ["jobs enqueue x --attempts 0", "invalid", /--attempts is 0: give a whole number from 1/],
  ["jobs enqueue x --timeout 0s", "invalid", /--timeout is "0s"; it must be at least 1ms/],
  ["jobs enqueue x --idempotenci-key k", "invalid", /Did you mean --idempotency-key\?/],
  [`jobs move ${id}`, "invalid", /no place given: give before, after, first or last/],
  [`jobs move ${id} --first --after x`, "invalid", /more than one place given: give before, after, first or last/],
  [`jobs move ${id} --first`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs move ${id} --before ${id}`, "invalid", /cannot be moved before itself/],
  [`jobs prioritise ${id} high`, "invalid", /priority is "high": give a whole number/],
  [`jobs prioritise ${id} 1001`, "invalid", /priority is 1001: give a whole number from -1000 to 1000/],
  [`jobs prioritise ${id} -1`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs edit ${id}`, "invalid", /required option '--params <json>' not specified/],
  [`jobs edit ${id} --params {}`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs place ${id}`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs result ${id}`, "not_found", new RegExp(`there is no job ${id}`)],
  [`jobs result ${id} --timeout 1s`, "invalid", /timeout is for wait: give both/],
  [`jobs result ${id} --wait --timeout soon`, "invalid", /--timeout is "soon", which is not a duration/],
  ["jobs run-now x", "invalid", /nothing to run: there is no daybook\.config\.ts here/],
  ["jobs run-now x --from gone.ts", "not_found", /there is no file .*gone\.ts/],
  ["queues normalise mail", "not_found", /there is no queue "mail"/],
  [`groups show ${id}`, "not_found", new RegExp(`there is no group ${id}`)],
  [`groups cancel ${id}`, "not_found", new RegExp(`there is no group ${id}`)],
  [`groups wait ${id}`, "not_found", new RegExp(`there is no group ${id}`)],
  ["groups list --status done", "invalid", /--status is "done": give one of open, completed, failed, partial/],
  [
    "groups create --mode parallel --jobs {}",
    "invalid",
    /jobs is an object: give a list of \{ "job": name, "params": … \}/,
  ],
  ["groups create --mode parallel --jobs [1]", "invalid", /jobs\[0\] is 1: give \{ "job": the name of the job/],
  ["templates show weekly", "not_found", /there is no template "weekly"/],
  ["templates create weekly", "invalid", /required option '--job <name>' not specified/],
  ["templates create weekly --job x --attempts few", "invalid", /--attempts is "few": give a whole number from 1/],
  ["templates create weekly --job x --backoff soon", "invalid", /backoff is "soon", which is not a duration/],
  ["templates create weekly --job x --params null", "invalid", /params is null/],
  ["templates edit weekly", "invalid", /nothing to change in template "weekly": give one of job, params/],
  ["templates list --active", "invalid", /unknown option '--active' \(Did you mean --archived\?\)/],
  ["reservations list --al", "invalid", /Did you mean --all\?/],
  ["retain --queue mail", "invalid", /give jobs \(an age\) or keep, or both/],
  ["retain --jobs long", "invalid", /--jobs is "long", which is not a duration/],
  ["retain --keep -1", "invalid", /--keep is -1: give a whole number from 0/],
  [
    "retain --keep 1 --status running",
    "invalid",
    /--status is "running": give one of completed, failed, cancelled, skipped/,
  ],
  ["queues limit mail", "invalid", /give concurrency or rate, or both/],
  ["queues limit mail --concurrency 0", "invalid", /--concurrency is 0: give a whole number from 1/],
  ["queues limit mail --concurrency many", "invalid", /--concurrency is "many": give a whole number/],
  ["queues limit mail --rate 10", "invalid", /--rate is "10": give how many and per how long, such as 10\/1m/],
  ["queues limit mail --rate 10/soon", "invalid", /the time of --rate is "soon", which is not a duration/],
  ["runs list --status bad", "invalid", /--status is "bad": give one of success, error/],
  ["runs list --kind jobs", "invalid", /--kind is "jobs": did you mean "job"\? Give one of job, listener/],
  [`runs slow --session ${id} --since 1h`, "invalid", /a session has its own beginning and end/],
  [`runs show ${id}`, "not_found", new RegExp(`there is no ended run ${id}`)],
];

test("wrong usage and unknown ids end with their code and say what was wrong", async (t) => {
  const { book, url } = await openTest(t, "sqlite");
  const cwd = testFolder(t);

  const ends = await Promise.all(slips.map(([args]) => refusal(args.split(" "), url, { cwd })));

  for (const [index, [exit, code, message]] of ends.entries()) {
    const [args, expected, says] = slips[index] ?? ["", "internal", /./];
    assert.deepEqual([exit, code], [errorCodes[expected].exit, expected], args);
    assert.match(message, says, args);
  }
  assert.deepEqual((await book.jobs.list()).items, []);
  assert.deepEqual(await book.queues.list(), [], "a command that was refused made a queue");
});

test("params over the limit are refused while they are read", async (t) => {
  const { url } = await openTest(t, "sqlite");
  const cwd = testFolder(t);

  const { code, stderr } = await runCli(["jobs", "enqueue", "x", "--params", "@/dev/zero", "--book", url], { cwd });

  assert.equal(code, 2);
  assert.match(stderr, /--params has more than 1048576 bytes/);
});

test("commands that change something make no book", async (t) => {
  const folder = testFolder(t);

  for (const args of [
    "jobs enqueue x",
    `jobs cancel ${id}`,
    "jobs pause x",
    "queues pause mail",
    "jobs list",
    "retain --keep 1",
  ]) {
    const [exit, code, message] = await refusal(args.split(" "), `${folder}/missing.db`);

    assert.deepEqual([exit, code], [4, "not_found"], args);
    assert.match(message, /"daybook migrate" makes one/);
  }
});
