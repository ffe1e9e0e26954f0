// daybook run of a folder of apps, and daybook apps.
import assert from "node:assert/strict";
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { projectWith, root } from "../docs/snippet.ts";
import { cleanup, openTest } from "../support/open-test.ts";
import { answer, refusal } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";

/** In this repo the package is found as its sources. */
const env = { NODE_OPTIONS: "--conditions=@daybook/source" };

const lamp = (word: string): string => `
import { app } from "daybook";
import { z } from "zod";
import { topic } from "./lib/topic.ts";
export default app("lamp", {
  config: z.object({ room: z.string() }),
  instances: [{ room: "hall" }],
  setup(home, { room }) {
    home.on(topic, { name: "bell", debounce: "1s" }, function ring() {});
    home.daily("07:00", { name: "morning" }, () => room + ${JSON.stringify(word)});
  },
});
`;
const other = `
import { app } from "daybook";
export const one = app("one", { setup: (home) => void home.on("a", { name: "x" }, () => 1) });
export const two = app("two", { setup: () => { throw new Error("no lamp found"); } });
`;

type Line = Record<string, unknown>;

/** At once, as most editors do it: nobody sees half of it, however slow the machine is. */
function writeWhole(file: string, text: string): void {
  const whole = join(dirname(file), ".whole");
  writeFileSync(whole, text);
  renameSync(whole, file);
}

/** The objects that the program prints, one after the other. */
function startRun(t: TestContext, cwd: string, args: readonly string[]) {
  const running = startCli(["run", ...args, "--json"], { cwd, env });
  cleanup(t, async () => {
    running.child.kill("SIGKILL");
    await running.ended;
  });
  const { stdout } = running.child;
  assert.ok(stdout !== null);
  const lines: AsyncIterator<string, undefined> = createInterface(stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<Line> => {
    const line: IteratorResult<string, undefined> = await lines.next();
    assert.ok(line.value !== undefined, "the program has ended");
    return JSON.parse(line.value) as Line;
  };
  /** The next one of that type, or about that app. */
  const nextOf = async (type: string, key?: string): Promise<Line> => {
    for (;;) {
      const line = await next();
      if (line["type"] === type && (key === undefined || line["key"] === key)) return line;
    }
  };
  return { running, next, nextOf };
}

for (const backend of cliBackends) {
  test(`${backend}: a folder of apps is run; what cannot be loaded or set up is said and left out`, async (t) => {
    const { url } = await openTest(t, backend, { worker: false });
    const cwd = projectWith(t, {
      "apps/lamp.ts": lamp("!"),
      "apps/lib/topic.ts": 'export const topic = "bell";',
      "apps/other.ts": other,
      "apps/broken.ts": 'throw new Error("not today");',
      "apps/again.ts": 'import { app } from "daybook"; export default app("one", { setup() {} });',
      "apps/readings.ts": "export const readings = 3;",
      "apps/lamp.test.ts": 'throw new Error("a test is no app");',
      "daybook.config.ts": `export default {
        zone: "Europe/Oslo",
        apps: { lamp: { instances: [{ room: "attic" }, { rom: "cellar" }] }, lmp: { instances: [] } } };`,
    });
    const { running, next, nextOf } = startRun(t, cwd, ["--book", url, "./apps"]);

    const working = await next();
    assert.deepEqual([working["type"], working["names"]], ["working", ["one", "lamp", "two"]]);
    const problems = [await next(), await next(), await next()].map((line) => String(line["message"]));
    assert.match(problems[0] ?? "", /broken\.ts cannot be loaded: Error: not today \(\S+broken\.ts:1:7\)/);
    assert.match(problems[1] ?? "", /other\.ts defines the app "one", and so does again\.ts, which is run/);
    assert.match(problems[2] ?? "", /instances of the app "lmp", which nothing defines: did you mean "lamp"\?/);
    const said = [await next(), await next(), await next(), await next()];
    assert.deepEqual(
      said.map((line) => [line["key"], line["status"], line["instance"] ?? null]),
      [
        ["lamp", "running", null],
        ["lamp", "failed", 1],
        ["one", "running", null],
        ["two", "failed", 0],
      ],
    );
    const listed = await answer(["listeners", "list"], url);
    assert.deepEqual(
      [listed["items"], (listed["live"] as Line[]).map(({ app, name }) => [app, name])],
      [[], [["lamp", "bell"]]],
    );
    const { stdout: published } = await runCli(["events", "publish", "bell", "--book", url], {});
    assert.match(published, /^\S+ is published to 0 durable listeners; 1 live listener of apps hears it\n$/);
    const heard = await nextOf("listener");
    assert.deepEqual([heard["name"], heard["topic"], heard["status"]], ["default/lamp/0/bell", "bell", "success"]);
    running.child.kill("SIGTERM");
    const { code } = await running.ended;
    assert.equal(code, 0);

    const { items } = (await answer(["apps", "list"], url)) as { items: { key: string; instances: Line[] }[] };
    assert.deepEqual(
      items.map(({ key, instances }) => [key, ...instances.map(({ status }) => status)]),
      [
        ["lamp", "stopped", "failed"],
        ["one", "stopped"],
        ["two", "failed"],
      ],
    );
    const shown = await answer(["apps", "show", "lamp"], url);
    const [bell, morning] = shown["registered"] as Line[];
    assert.deepEqual([bell?.["name"], bell?.["handler"], bell?.["location"]], ["bell", "ring", "apps/lamp.ts:9"]);
    assert.match(String(morning?.["source"]), /^home\.daily\("07:00", \{ name: "morning" \}/);
    const { stdout } = await runCli(["apps", "show", "lamp", "--book", url], {});
    assert.match(
      stdout,
      /^app\tinstance\tstatus\tprocess\tsince\tregisters\terror\nlamp\t0\tstopped\t\d+ on \S+\t\S+\t1 listener, 1 schedule, 0 jobs\t\n/,
    );
    assert.match(
      stdout,
      /\nlamp\t1\tfailed\t.*\tapps\/lamp\.ts:\d+: .*\nerror of instance 1\nat\tapps\/lamp\.ts:\d+\n.*room/s,
    );
    assert.match(
      stdout,
      /\nlistener bell of instance 0\ntopic\tbell\n[^]*?debounceMs\t1000\n[^]*?handler\tring\nlocation\tapps\/lamp\.ts:9\n/,
    );
    assert.match(stdout, /\nhome\.on\(topic, \{ name: "bell", debounce: "1s" \}, function ring\(\) \{\}\)/);
    assert.deepEqual(await refusal(["apps", "show", "lmp"], url), [
      ...[4, "not_found", 'there is no app "lmp": did you mean "lamp"?'],
    ]);

    assert.equal((await answer(["info"], url))["zone"], "Europe/Oslo");
    const schedule = await answer(["schedules", "show", "default/lamp/0/morning"], url);
    assert.equal(schedule["zone"], "Europe/Oslo");

    const would = await runCli(["apps", "remove", "lamp", "--book", url], {});
    assert.equal(
      would.stdout.trim(),
      "lamp would be removed, with 1 listener, 1 schedule, 0 jobs; of 1 registration that ran the history stays; remove it with --apply",
    );
    const done = await answer(["apps", "remove", "lamp", "--apply"], url);
    assert.deepEqual(done, {
      key: "lamp",
      dryRun: false,
      instances: 2,
      listeners: 1,
      schedules: 1,
      jobs: 0,
      kept: 1,
    });
    assert.deepEqual((await answer(["schedules", "list"], url))["items"], []);
  });
}

test("with --watch an app is loaded anew when its file, or one that it imports from anywhere, is edited; others stay", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const cwd = projectWith(t, {
    "apps/lamp.ts": lamp("one"),
    "apps/lib/topic.ts": 'export const topic = "bell";',
    "apps/still.ts": 'import { app } from "daybook"; export default app("still", { setup() {} });',
    "shared/rooms.ts": 'export { names } from "./names.ts";',
    "shared/names.ts": 'export const names = ["hall"];',
    "apps/rooms.ts": `import { app } from "daybook";
      import { names } from "../shared/rooms.ts";
      export default app("rooms", { setup: (home) => names.forEach((name) => home.on(name, { name }, () => 1)) });`,
  });
  const write = (name: string, text: string): void => writeWhole(join(cwd, "apps", name), text);
  const { running, nextOf } = startRun(t, cwd, ["--book", url, "apps", "--watch"]);
  for (const key of ["lamp", "rooms", "still"]) await nextOf("app", key);
  const before = await book.apps.get("still");

  write("lib/topic.ts", 'export const topic = "gong";');
  await nextOf("app", "lamp");
  const topic = (await book.apps.get("lamp")).registered.find(({ name }) => name === "bell")?.settings["topic"];
  assert.equal(topic, "gong");

  writeWhole(join(cwd, "shared/names.ts"), 'export const names = ["attic"];');
  await nextOf("app", "rooms");
  assert.deepEqual(
    (await book.apps.get("rooms")).registered.map(({ name }) => name),
    ["attic"],
  );

  write("lamp.ts", lamp("two").replace("morning", "early"));
  await nextOf("app", "lamp");
  const names = (await book.apps.get("lamp")).registered.map(({ name }) => name);
  assert.deepEqual(names, ["bell", "early"]);

  write("lamp.ts", "this is no TypeScript");
  const problem = await nextOf("problem");
  assert.deepEqual([problem["type"], problem["file"]], ["problem", join(cwd, "apps/lamp.ts")]);
  assert.equal((await book.apps.get("lamp")).instances[0]?.status, "running");

  write("fresh.ts", 'import { app } from "daybook"; export default app("fresh", { setup() {} });');
  await nextOf("app", "fresh");
  rmSync(join(cwd, "apps/lamp.ts"));
  assert.equal((await nextOf("app", "lamp"))["status"], "stopped");
  assert.equal((await book.apps.get("lamp")).instances[0]?.status, "stopped");

  assert.deepEqual(await book.apps.get("still"), before);
  running.child.kill("SIGINT");
  assert.equal((await running.ended).code, 0);
});

test("the example of a home is run as a folder of apps, and loaded anew when one of them is edited", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const cwd = projectWith(t, {});
  cpSync(join(root, "examples/home"), join(cwd, "home"), { recursive: true });
  const { running, nextOf } = startRun(t, cwd, ["--book", url, "home", "--watch"]);
  for (const key of ["blinds", "lights", "presence"]) assert.equal((await nextOf("app", key))["status"], "running");

  const file = join(cwd, "home/lights.ts");
  writeWhole(file, readFileSync(file, "utf8").replace('default("5m")', 'default("7m")'));
  await nextOf("app", "lights");

  const off = (await book.apps.get("lights")).registered.find(({ name, instance }) => name === "off" && instance === 0);
  assert.deepEqual([off?.settings["debounceMs"], off?.location], [420_000, "home/lights.ts:18"]);
  running.child.kill("SIGTERM");
  assert.equal((await running.ended).code, 0);
});

test("a folder without apps, and --watch of a file, are refused", async (t) => {
  const { url } = await openTest(t, "sqlite", { worker: false });
  const cwd = projectWith(t, {
    "empty/readings.ts": "export const readings = 3;",
    "broken/lamp.ts": 'throw new Error("not today");',
    "jobs.ts": 'import { job } from "daybook"; export default job("greet", { run: () => 1 });',
    "wrong/daybook.config.ts": "export default { apps: { lamp: { instances: 3 } } };",
  });
  const why = async (...args: string[]): Promise<string> => (await refusal(["run", ...args], url, { cwd }))[2];

  assert.match(await why("empty"), /no file in \S+empty exports an app/);
  assert.match(await why("broken"), /lamp\.ts cannot be loaded: Error: not today/);
  assert.match(await why("jobs.ts", "--watch"), /--watch is for a folder of apps/);
  assert.match(
    await why("jobs.ts", "--config", "wrong/daybook.config.ts"),
    /instances of app "lamp" are 3: give a list/,
  );
});
