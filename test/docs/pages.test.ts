import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { errorCodes } from "../../src/index.ts";
import { checks } from "../../src/book/doctor.ts";
import { assertGenerated } from "./generated.ts";
import { root } from "./snippet.ts";

test("docs/errors.md lists every code with its HTTP status and its exit code", () => {
  const rows = Object.entries(errorCodes).map(
    ([code, { status, exit, meaning }]) => `| \`${code}\` | ${status} | ${exit} | ${meaning} |\n`,
  );

  assertGenerated(
    "docs/errors.md",
    "error codes",
    `| code | HTTP status | exit code | meaning |\n| --- | --- | --- | --- |\n${rows.join("")}`,
  );
});

test("docs/promises.md lists every check of doctor", () => {
  const rows = checks.map(({ promise, name }) => `| ${promise} | ${name} |\n`);

  assertGenerated("docs/promises.md", "checks", `| promise | what must hold |\n| --- | --- |\n${rows.join("")}`);
});

test("every link between the pages leads somewhere", () => {
  const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", ...markdownIn("docs")];

  const broken = pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !existsSync(join(root, dirname(page), target)))
      .map((target) => `${page} -> ${target}`),
  );

  assert.deepEqual(broken, []);
});

test("every decision has its own number, and the list of decisions names it", () => {
  const files = readdirSync(join(root, "docs/decisions")).filter((name) => name !== "README.md");
  const list = readFileSync(join(root, "docs/decisions/README.md"), "utf8");

  assert.equal(new Set(files.map((name) => name.slice(0, 3))).size, files.length);
  for (const name of files) {
    assert.match(name, /^\d{3}-[a-z0-9-]+\.md$/);
    assert.ok(list.includes(`(${name})`), `docs/decisions/README.md does not list ${name}`);
  }
});

function markdownIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name));
}
