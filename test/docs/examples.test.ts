import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import * as daybook from "../../src/index.ts";
import { testFolder } from "../support/open-test.ts";
import { checkTypes, projectWith, root, runProgram, snippetsOf } from "./snippet.ts";

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
    assert.notEqual(stdout, "", name);
  }
});

test("the tour shows an undone transaction, a group commit, a lost process, a backup and the doctor", async (t) => {
  const { stdout } = await runExample(t, "tour.ts");

  assert.match(stdout, /400 cents went from ada to bob: ada has 600, bob has 400/);
  assert.match(stdout, /5000 were refused as invalid, .*: ada has 600, bob has 400/);
  assert.match(stdout, /1,000 at once: \d+ ms; the table holds 1100 rows/);
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

test("notes are still there the next time", async (t) => {
  const folder = testFolder(t);

  await runProgram(join(examples, "notes.ts"), folder, ["buy milk"]);
  const { stdout } = await runProgram(join(examples, "notes.ts"), folder, ["it's done"]);

  assert.match(stdout, /^1 .* buy milk\n2 .* it's done\n$/);
});

test("the README's first example and that of docs/errors.md run", async (t) => {
  const [first = ""] = snippetsOf(readFileSync(join(root, "README.md"), "utf8"));
  const [errors = ""] = snippetsOf(readFileSync(join(root, "docs/errors.md"), "utf8"));
  const folder = projectWith(t, { "errors.ts": errors, "readme.ts": `${first}\nconsole.log(notes, acme.tenantId);\n` });

  const none = await runProgram("errors.ts", folder);
  const { code, stdout, stderr } = await runProgram("readme.ts", folder);

  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "There is no book yet.\n", ""]);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /\{ id: 1, body: 'hello' \}.*acme/);
});

test("the examples in the doc comments of public functions run and their types hold", async (t) => {
  const programs = Object.fromEntries(
    publicFiles().flatMap((path) =>
      snippetsOf(readFileSync(join(root, "src", path), "utf8")).map((snippet, index) => {
        const name = `${path.replaceAll(/\W+/g, "-")}-${index + 1}.ts`;
        return [name, asProgram(snippet)];
      }),
    ),
  );
  const folder = projectWith(t, programs);

  const types = await checkTypes(folder);

  assert.ok(Object.keys(programs).length >= 4, "the examples were not found");
  assert.deepEqual([types.code, types.stdout], [0, ""]);
  // One after the other in one process, because loading the library takes far longer than any of them.
  const names = Object.keys(programs);
  const all = names.map((name) => `await import("./${name}");\nconsole.log("${name}");\n`).join("");
  writeFileSync(join(folder, "all.ts"), all);
  const { code, stdout, stderr } = await runProgram("all.ts", folder);
  const done = names.filter((name) => stdout.split("\n").includes(name));
  const next = names[done.length] ?? "";
  assert.deepEqual([code, stderr, done], [0, "", names], `${next}:\n${programs[next]}`);
});

/** The files whose names the front door passes on. */
function publicFiles(): string[] {
  const door = readFileSync(join(root, "src/index.ts"), "utf8");
  return [...new Set([...door.matchAll(/from "\.\/(.+?)"/g)].map(([, path = ""]) => path))];
}

/** What the reader of a doc comment has already. */
const prelude = `
const sendReceipt = job("send-receipt", {
  params: z.object({ orderId: z.string() }),
  run: ({ orderId }) => orderId,
});
const OrderPaid = event("order.paid", { schema: z.object({ orderId: z.string() }) });
await using book = await open(":memory:", { use: [sendReceipt, OrderPaid] });
await book.write(async (tx) => {
  await tx.sql\`create table note (id integer primary key, body text not null)\`;
  await tx.sql\`create table counter (value integer not null)\`;
});
`;

/** Gives a snippet every public name, the prelude unless it opens a book itself, and a tx where it uses one. */
function asProgram(snippet: string): string {
  const names = `import { z } from "zod";\nimport { ${Object.keys(daybook).join(", ")} } from "daybook";\n`;
  if (/\bopen\(/.test(snippet)) return names + snippet;
  const needsTx = /\btx\./.test(snippet) && !/\bbook\./.test(snippet);
  // In a block, a snippet may define anew what the reader has.
  const shown = needsTx ? `await book.write(async (tx) => {\n${snippet}});\n` : `{\n${snippet}}\n`;
  return names + prelude + shown;
}
