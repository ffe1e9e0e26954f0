// Where in the source a registration was made, and its text.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { app, open, type App, type RegistrationRecord } from "../../src/index.ts";
import { testFolder } from "../support/open-test.ts";

type Setup = { setup(home: App): void };

async function registeredBy(t: TestContext, file: string, query = ""): Promise<Map<string, RegistrationRecord>> {
  const { setup } = (await import(pathToFileURL(file).href + query)) as Setup;
  const book = await open(":memory:", { use: [app("home", { setup })] });
  t.after(() => book.close());
  const { registered, instances } = await book.apps.get("home");
  assert.equal(instances[0]?.error ?? null, null);
  return new Map(registered.map((each) => [each.name, each]));
}

const text = `// Kommentar mit Umlauten: äöü 🏠 (, "
import type { App } from "daybook";
type Room = { readonly name: string };

export function setup(home: App): void {
  const on = "türe🏠"; home.on("a", { name: "same line" }, () => undefined);
  home.on("motion.>", {
    name: "several lines",
    // a bracket in a comment: )
    where: (p) => (p as Room).name !== ")",
  }, async function follow() {
    await Promise.resolve(")");
  });
  for (const room of ["hall", "attic"] satisfies string[]) {
    home.every("5m", { name: \`in a loop: \${room}\` }, () => undefined);
  }
  home.daily("07:00", { name: "first of a chain" }, open)
    .daily("19:00", { name: "second of it" }, open).on(on, { name: "third" }, () => home.on);
  const { cron } = home;
  cron("0 * * * *", { name: "taken apart" }, open);
  eval('home.on("a", { name: "evaluated" }, () => undefined)');
  new Function("home", 'home.on("a", { name: "made" }, () => undefined)')(home);
  const dim = home.job({ name: "work" }, ({ to }: { to: number }) => to);
  void dim;
  home.in("1h", { name: "a reserved word" }, open)["on"]("b", { name: "in brackets" }, open)
    // (
    .in("2h", { name: "reserved, and chained" }, open);
  home [ /* [ ( */ "on" ] /* ( */ ("c", { name: "by any name" }, (more) => Reflect.apply(open, more, []));
  home?.every?.("1h", { name: "if it is there" }, open);
  (home as App).once!("2026-12-24T18:00:00Z", { name: "once" }, open);
}

function open(): void {}
`;

const expected: Readonly<Record<string, [line: number, text: string | null]>> = {
  "same line": [6, 'home.on("a", { name: "same line" }, () => undefined)'],
  "several lines": [7, text.slice(text.indexOf('home.on("motion.>"'), text.indexOf("  for (const room") - 2)],
  "in a loop: hall": [15, 'home.every("5m", { name: `in a loop: ${room}` }, () => undefined)'],
  "in a loop: attic": [15, 'home.every("5m", { name: `in a loop: ${room}` }, () => undefined)'],
  "first of a chain": [17, 'home.daily("07:00", { name: "first of a chain" }, open)'],
  "second of it": [18, 'daily("19:00", { name: "second of it" }, open)'],
  third: [18, 'on(on, { name: "third" }, () => home.on)'],
  "taken apart": [20, 'cron("0 * * * *", { name: "taken apart" }, open)'],
  evaluated: [21, null],
  made: [22, null],
  work: [23, 'home.job({ name: "work" }, ({ to }: { to: number }) => to)'],
  "a reserved word": [25, 'home.in("1h", { name: "a reserved word" }, open)'],
  "in brackets": [25, '["on"]("b", { name: "in brackets" }, open)'],
  "reserved, and chained": [27, 'in("2h", { name: "reserved, and chained" }, open)'],
  "by any name": [28, between("home [ /*", "[]))")],
  "if it is there": [29, 'home?.every?.("1h", { name: "if it is there" }, open)'],
  once: [30, between("(home as App).once", '"once" }, open)')],
};

function between(from: string, until: string): string {
  return text.slice(text.indexOf(from), text.indexOf(until) + until.length);
}

function tsc(...options: string[]): void {
  const program = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [program, "--noCheck", ...options]);
}

function assertAll(found: ReadonlyMap<string, RegistrationRecord>, file: string): void {
  for (const [name, [line, source]] of Object.entries(expected)) {
    const one = found.get(name);
    assert.deepEqual([one?.location, one?.source], [`${file}:${line}`, source], name);
  }
  assert.equal(found.size, Object.keys(expected).length);
}

test("a registration has its place and its text, exactly, whatever stands around it", async (t) => {
  const file = join(testFolder(t), "home.ts");
  writeFileSync(file, text);

  const found = await registeredBy(t, file);

  assertAll(found, file);
  assert.deepEqual(
    ["several lines", "same line", "taken apart"].map((name) => found.get(name)?.handler),
    ["follow", "<anonymous>", "open"],
  );
});

test("also in a file of Windows, and in one that was edited and loaded anew", async (t) => {
  const file = join(testFolder(t), "home.ts");
  writeFileSync(file, text.replaceAll("\n", "\r\n"));
  const before = await registeredBy(t, file);
  assert.equal(before.get("several lines")?.source, expected["several lines"]?.[1]?.replaceAll("\n", "\r\n"));
  assert.equal(before.get("work")?.source, expected["work"]?.[1]);

  writeFileSync(file, `\n\n${text}`);
  const after = await registeredBy(t, file, "?again");

  assert.equal(after.get("work")?.location, `${file}:25`);
  assert.equal(after.get("work")?.source, expected["work"]?.[1]);
});

test("also from what a compiler made of it, by its source map; without one the compiled text is what there is", async (t) => {
  const folder = testFolder(t);
  mkdirSync(join(folder, "src"));
  const file = join(folder, "src/home.ts");
  writeFileSync(file, text);
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  const compile = (out: string, ...options: string[]): string => {
    tsc(
      "--ignoreConfig",
      file,
      "--target",
      "es2022",
      "--module",
      "nodenext",
      "--outDir",
      join(folder, out),
      ...options,
    );
    return join(folder, out, "home.js");
  };

  for (const options of [["--sourceMap"], ["--inlineSourceMap", "--inlineSources"]]) {
    const found = await registeredBy(t, compile(`dist-${options.length}`, ...options));
    assertAll(found, file);
  }
  const bare = compile("bare");
  const found = await registeredBy(t, bare);
  assert.ok(found.get("work")?.location.startsWith(bare));
  assert.equal(found.get("work")?.source, 'home.job({ name: "work" }, ({ to }) => to)');
});

test("also when Daybook itself runs from what its own build made", (t) => {
  const folder = testFolder(t);
  const root = join(import.meta.dirname, "../..");
  tsc("--project", join(root, "tsconfig.build.json"), "--outDir", join(folder, "dist"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "home.ts"), text);
  const program = `import { app, open } from "./dist/index.js";
    import { setup } from "./home.ts";
    await using book = await open(":memory:", { use: [app("home", { setup })] });
    console.log(JSON.stringify((await book.apps.get("home")).registered));`;
  writeFileSync(join(folder, "program.js"), program);

  const said = execFileSync(process.execPath, ["program.js"], { cwd: folder, encoding: "utf8" });

  const registered = JSON.parse(said) as RegistrationRecord[];
  // From the working folder, as people write paths.
  assertAll(new Map(registered.map((each) => [each.name, each])), "home.ts");
});

test("the text is null, with its location, when the file cannot be read or parsed; of a long one the beginning is kept", async (t) => {
  const folder = testFolder(t);
  const setup = 'export const setup = (home) => home.on("a", { name: "x" }, () => undefined);';
  const broken = join(folder, "broken.js");
  writeFileSync(broken, `${setup}\n//# sourceMappingURL=missing.js.map`);
  const found = await registeredBy(t, broken);
  assert.deepEqual([found.get("x")?.location, found.get("x")?.source?.length], [`${broken}:1`, 44]);

  const gone = join(folder, "gone.js");
  writeFileSync(gone, setup);
  await import(pathToFileURL(gone).href);
  rmSync(gone);
  const none = await registeredBy(t, gone);
  assert.deepEqual([none.get("x")?.location, none.get("x")?.source], [`${gone}:1`, null]);

  const long = join(folder, "long.ts");
  const chained = setup.replace("undefined", JSON.stringify("ü".repeat(20_000)));
  writeFileSync(long, chained.replace(/;$/, '.daily("07:00", { name: "y" }, () => undefined);'));
  const { x, y } = Object.fromEntries(await registeredBy(t, long));
  assert.deepEqual([y?.location, y?.source], [`${long}:1`, 'daily("07:00", { name: "y" }, () => undefined)']);
  assert.match(x?.source ?? "", /^home\.on\("a", \{ name: "x" \}, \(\) => "ü+…$/);
  assert.ok(Buffer.byteLength(x?.source ?? "") > 16_000);
});
