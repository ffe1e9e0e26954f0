// Completion in the shells themselves, where they are on this machine.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createProgram } from "../../src/cli/program.ts";
import { placesOfProgram } from "../../src/cli/completion/tree.ts";
import { testFolder } from "../support/open-test.ts";
import { runCli } from "./run-cli.ts";

const shells = ["bash", "zsh", "fish"] as const;
const places = await placesOfProgram(await createProgram({ json: false, isNamed: () => true }));

async function script(shell: string): Promise<string> {
  const { code, stdout } = await runCli(["completion", shell]);
  assert.equal(code, 0);
  return stdout;
}

/** What bash offers for each of these lines; "|" is where the cursor stands. */
async function offeredByBash(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const calls = lines.map((words) => {
    const quoted = words.map((word) => `'${word}'`).join(" ");
    return `COMP_WORDS=(daybook ${quoted}); COMP_CWORD=${words.length}; _daybook; echo "\${COMPREPLY[*]}"`;
  });
  const { stdout, stderr, status } = spawnSync("bash", ["--norc", "--noprofile"], {
    input: [await script("bash"), ...calls].join("\n"),
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout
    .split("\n")
    .slice(0, lines.length)
    .map((line) => line.split(" ").filter((word) => word !== ""));
}

test("bash offers every command and every option of the program, at its place", async () => {
  const open = places.map(({ path }) => (path === "" ? [] : path.split(" ")));

  const words = await offeredByBash(open.map((path) => [...path, ""]));
  const options = await offeredByBash(open.map((path) => [...path, "-"]));

  for (const [index, place] of places.entries()) {
    const named = (each: readonly { readonly name: string }[]): string[] => [...new Set(each.map(({ name }) => name))];
    assert.deepEqual(words[index], named(place.words), place.path);
    assert.deepEqual(options[index]?.toSorted(), named(place.options).toSorted(), place.path);
  }
  assert.ok(places.length > 100);
});

test("bash goes on with what was begun, and offers what a value may be", async () => {
  const lines: [words: string[], offered: string[]][] = [
    [["dead"], ["dead-letters"]],
    [["jobs", "li"], ["list"]],
    [["--json", "--tenant", "jobs", "que"], ["queues"]],
    [["--book", "=", "a.db", "runs", "sh"], ["show"]],
    [["jobs", "list", "--no-r"], ["--no-retried"]],
    [["jobs", "list", "--status", "ca"], ["cancelled"]],
    [["jobs", "list", "--status", "=", "ca"], ["cancelled"]],
    [["jobs", "list", "--status", "failed,ca"], ["failed,cancelled"]],
    [["init", "--template", "minimal,se"], []],
    [["runs", "list", "--status", "timed"], ["timed_out"]],
    [["jobs", "list", "--status", "failed", "--ki"], ["--kind"]],
    [["jobs", "show", "an-id", "--js"], ["--json"]],
    [["jobs", "list", "--queue", "m"], []],
    [["sessions", "--lim"], ["--limit"]],
    [["completion", "z"], ["zsh"]],
    [["wholly-unknown", ""], places[0]?.words.map(({ name }) => name) ?? []],
  ];

  const offered = await offeredByBash(lines.map(([words]) => words));

  for (const [index, [words, expected]] of lines.entries()) {
    assert.deepEqual(offered[index], expected, words.join(" "));
  }
});

for (const shell of shells) {
  test(`${shell} can read its script, which names every command`, async (t) => {
    const text = await script(shell);
    const file = join(testFolder(t), "script");
    writeFileSync(file, text);

    for (const { path } of places) assert.ok(text.includes(path), path);
    const { error, status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
    if (error !== undefined) t.diagnostic(`there is no ${shell} on this machine, so its script was not read by it`);
    else assert.deepEqual([status, stderr], [0, ""]);
  });
}

test("fish and zsh offer what bash offers, where they are", async (t) => {
  const folder = testFolder(t);
  const fish = join(folder, "daybook.fish");
  const zsh = join(folder, "_daybook");
  writeFileSync(fish, await script("fish"));
  writeFileSync(zsh, await script("zsh"));
  const asked = {
    fish: ["-c", `source ${fish}; complete -C 'daybook dead-letters re'; complete -C 'daybook jobs list --status ca'`],
    zsh: ["-fc", `fpath=(${folder} $fpath); autoload -Uz compinit _daybook; compinit -u -D; whence -w _daybook`],
  };
  for (const [shell, args] of Object.entries(asked)) {
    const { error, status, stdout } = spawnSync(shell, args, { encoding: "utf8" });
    if (error !== undefined) t.diagnostic(`there is no ${shell} on this machine`);
    else assert.deepEqual([status, /redrive[^]*cancelled|_daybook: function/.test(stdout)], [0, true], stdout);
  }
});

test("a shell that is not known is refused with those that are", async () => {
  const { code, stderr } = await runCli(["completion", "tcsh"]);

  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish/);
});
