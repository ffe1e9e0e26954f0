import assert from "node:assert/strict";
import { test } from "node:test";
import { projectWith } from "../docs/snippet.ts";
import { openTest } from "../support/open-test.ts";
import { answer, refusal } from "./answer-of.ts";
import { cliBackends, startCli } from "./run-cli.ts";
import { until } from "./until.ts";

/** In this repo the package is found as its sources. */
const env = { NODE_OPTIONS: "--conditions=@daybook/source" };

const config = `
import { job, type Config } from "daybook";
import { z } from "zod";

const greet = job("greet", { queue: "mail", params: z.object({ name: z.string() }), run: ({ name }) => name });
export default {
  use: [greet],
  commands: {
    say: { params: z.object({ what: z.string() }), argv: [process.execPath, "-e", "console.log(process.argv[1])", "{what}"] },
  },
} satisfies Config;
`;

for (const backend of cliBackends) {
  test(`${backend}: what the config of a project declares is run, enqueued and grouped by name`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const cwd = projectWith(t, { "daybook.config.ts": config, "other.ts": config });
    const here = { cwd };

    const greeted = await answer(["jobs", "enqueue", "greet", "--params", '{"name": "ada"}'], url, here);
    const unknown = await answer(["jobs", "enqueue", "elsewhere"], url, here);
    const wrong = await refusal(["jobs", "enqueue", "greet"], url, here);
    const option = await refusal(["jobs", "enqueue", "say", "--params", '{"what": "--eval"}'], url, here);
    const undeclared = await refusal(["jobs", "enqueue", "gret", "--config", "other.ts"], url, here);
    const now = await answer(["jobs", "run-now", "say", "--params", '{"what": "hello"}'], url, here);
    const list = JSON.stringify([
      { job: "say", params: { what: "one" } },
      { job: "greet", params: { name: "bob" } },
    ]);
    const group = await answer(["groups", "create", "--mode", "sequential", "--jobs", list], url, here);
    const id = String(group["id"]);
    const added = await answer(["groups", "add", id, "say", "--params", '{"what": "two"}'], url, here);
    const running = startCli(["run", "--book", url], { cwd, env });
    await until(async () => (await book.groups.get(id)).status === "completed");
    running.child.kill("SIGTERM");
    const { code } = await running.ended;

    assert.equal((await book.jobs.get(String(greeted["id"]))).queue, "mail");
    assert.equal(unknown["status"], "queued");
    assert.match(wrong[2], /params of job "greet" do not fit its schema: name/);
    assert.match(option[2], /param "what" of command "say" is "--eval", which its program would take for an option/);
    assert.deepEqual(undeclared, [2, "invalid", 'other.ts does not define the job "gret": did you mean "greet"?']);
    assert.equal((now["result"] as { exitCode: number }).exitCode, 0);
    assert.deepEqual([added["status"], (await book.groups.members(id)).length, code], ["waiting", 3, 0]);
  });
}

test("a config that is missing, malformed or declares something wrong is refused with its name", async (t) => {
  const { url } = await openTest(t, "sqlite", { worker: false });
  const files: [body: string, message: RegExp][] = [
    ["export const use = [];", /wrong0\.ts has no default export: export default \{ use/],
    ["export default 5;", /wrong1\.ts: its default export is 5/],
    [
      "export default { comands: {} };",
      /wrong2\.ts: unknown option "comands" for the config: did you mean "commands"\?/,
    ],
    ["export default { use: [{}] };", /wrong3\.ts: use\[0\] is .*, which is no definition/],
    ["export default { commands: { say: {} } };", /wrong4\.ts: argv of command "say" is a list of texts/],
    ['export default { commands: { say: "ls" } };', /wrong5\.ts: command "say" is "ls": give/],
    [
      "export default { commands: { say: { argv: ['ls'], arg: 1 } } };",
      /wrong6\.ts: unknown option "arg" for command "say"/,
    ],
    [
      'export default { retention: { jobs: "long" } };',
      /wrong7\.ts: retention\.jobs is "long", which is not a duration/,
    ],
    ["throw new RangeError('broken');", /wrong8\.ts cannot be loaded: RangeError: broken/],
  ];
  const cwd = projectWith(t, Object.fromEntries(files.map(([body], index) => [`wrong${index}.ts`, body])));

  for (const [index, [, message]] of files.entries()) {
    const [exit, code, said] = await refusal(["jobs", "enqueue", "say", "--config", `wrong${index}.ts`], url, { cwd });
    assert.deepEqual([exit, code], [2, "invalid"]);
    assert.match(said, message);
  }
  const missing = await refusal(["jobs", "enqueue", "say", "--config", "none.ts"], url, { cwd });
  const nothing = await refusal(["run"], url, { cwd });
  assert.deepEqual(missing.slice(0, 2), [4, "not_found"]);
  assert.match(nothing[2], /nothing to run: there is no daybook\.config\.ts here, so name the module/);
});
