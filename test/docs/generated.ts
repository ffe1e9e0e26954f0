// Parts of the docs that are made from the code. They stand between two marks and are compared in the tests, so they
// cannot go stale; `npx node --test test/docs/` with DAYBOOK_WRITE_DOCS=1 in the environment writes them anew.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

export function assertGenerated(path: string, name: string, expected: string): void {
  const text = readFileSync(join(root, path), "utf8");
  const [begin, end] = [`<!-- begin ${name} -->\n`, `<!-- end ${name} -->`];
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  assert.ok(text.includes(begin) && to >= from, `${path} lacks the marks ${begin.trim()} and ${end}`);
  if (process.env["DAYBOOK_WRITE_DOCS"] === "1") {
    writeFileSync(join(root, path), text.slice(0, from) + expected + text.slice(to));
    return;
  }
  assert.equal(
    text.slice(from, to),
    expected,
    `"${name}" in ${path} is out of date: DAYBOOK_WRITE_DOCS=1 npx node --test test/docs/ writes it anew`,
  );
}
