// daybook init: each template is a project that type-checks and runs.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import { test } from "node:test";
import { promisify } from "node:util";
import { root } from "../docs/snippet.ts";
import { compileCache } from "../support/compile-cache.ts";
import { testFolder } from "../support/open-test.ts";
import { parsed, parsedError, runCli, type Ended } from "./run-cli.ts";

/** A project of this template, in which this repo is the installed package. */
async function projectOf(cwd: string, template: string): Promise<{ folder: string; made: Ended }> {
  const made = await runCli(["init", `My ${template}`, "--template", template, "--json"], { cwd });
  const folder = join(cwd, `My ${template}`);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/daybook"));
  for (const name of ["zod", "@types"])
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  return { folder, made };
}

const files = {
  minimal: ["README.md", "src/jobs.ts", "src/main.ts"],
  server: ["README.md", "daybook.config.ts", "src/orders.ts"],
  automations: ["README.md", "apps/lights.ts", "apps/plants.ts"],
};

test("each project has its files and says what comes next, and all of them type-check", async (t) => {
  const cwd = testFolder(t);

  for (const [template, own] of Object.entries(files)) {
    const { folder, made } = await projectOf(cwd, template);

    const { files: said, ...answer } = parsed(made.stdout) as { files: string[] };
    assert.deepEqual([made.code, made.stderr], [0, ""]);
    assert.deepEqual(said.toSorted(), [".gitignore", "package.json", "tsconfig.json", ...own].toSorted());
    assert.deepEqual(answer, { folder, template, next: [`cd 'My ${template}'`, "npm install", "npm start"] });
    assert.match(readFileSync(join(folder, "README.md"), "utf8"), new RegExp(`^# my-${template}\n`));
  }
  // All have the same settings, so one run checks them. The types are those of the sources, which need no build.
  const all = { extends: "./My minimal/tsconfig.json", include: ["My */**/*.ts"] };
  writeFileSync(join(cwd, "tsconfig.json"), JSON.stringify(all));
  symlinkSync(join(cwd, "My minimal/node_modules"), join(cwd, "node_modules"));
  const strict = ["--noImplicitReturns", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"];
  const sources = ["--customConditions", "@daybook/source", "--lib", "esnext,esnext.temporal", ...strict];
  await promisify(execFile)(join(root, "node_modules/.bin/tsc"), ["-p", cwd, ...sources]);
});

/** What each project says once it works. */
const works: Readonly<Record<string, RegExp>> = {
  minimal: /Hello, Ada\./,
  server: /Log in once[^]*Ctrl-C ends it/,
  automations: /lights/,
};

for (const [template, expected] of Object.entries(works)) {
  test(`npm start runs a project from the template ${template} until it is told to stop`, async (t) => {
    const { folder } = await projectOf(testFolder(t), template);

    const { output, code } = await start(folder, expected);

    assert.match(output, expected);
    assert.equal(code, 0);
    assert.ok(readdirSync(folder).some((name) => name.endsWith(".db")));
  });
}

/** Runs what `npm start` runs, until it has said something, and then ends it as Ctrl-C does. */
async function start(folder: string, until: RegExp): Promise<{ output: string; code: number | null }> {
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { scripts: { start: string } };
  const [program, ...args] = scripts.start.split(" ");
  const main = program === "daybook" ? [join(root, "src/cli/main.ts")] : [];
  // The port that it takes by itself may be another's.
  if (args[0] === "serve") args.push("--port", "0");
  const env = {
    PATH: process.env["PATH"],
    NODE_OPTIONS: "--conditions=@daybook/source",
    NODE_COMPILE_CACHE: compileCache,
  };
  const child = spawn(process.execPath, [...main, ...args], { cwd: folder, env });
  let output = "";
  let told = false;
  const hear = (text: Buffer): void => {
    output += String(text);
    // A second signal would end it at once.
    if (until.test(output) && !told) told = child.kill("SIGINT");
  };
  child.stdout.on("data", hear);
  child.stderr.on("data", hear);
  await once(child, "close");
  return { output, code: child.exitCode };
}

test("a file that is there is never written over, and then nothing is written", async (t) => {
  const cwd = testFolder(t);
  mkdirSync(join(cwd, "src"));
  writeFileSync(join(cwd, "src/main.ts"), "mine");
  writeFileSync(join(cwd, "note.txt"), "mine");

  const { code, stdout, stderr } = await runCli(["init", "--json"], { cwd });
  const other = await runCli(["init", "--template", "automations"], { cwd });
  const file = await runCli(["init", "note.txt", "--json"], { cwd });

  assert.deepEqual([code, stdout, parsedError(stderr).code], [5, "", "conflict"]);
  assert.match(parsedError(stderr).message, /has src\/main\.ts already, so nothing was written/);
  assert.deepEqual([other.code, existsSync(join(cwd, "apps/lights.ts"))], [0, true]);
  assert.equal(readFileSync(join(cwd, "src/main.ts"), "utf8"), "mine");
  assert.deepEqual([file.code, parsedError(file.stderr).code], [2, "invalid"]);
});

test("a template that is not known is refused with those that are", async (t) => {
  const { code, stderr } = await runCli(["init", "--template", "maximal"], { cwd: testFolder(t) });

  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are minimal, server, automations/);
});
