// The types of all that the docs show, in one project, because the compiler reads the library anew each time it is asked.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { commentPrograms } from "./comment-programs.ts";
import { checkTypes, pages, programOf, projectWith, root, snippetsOf } from "./snippet.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

test("the types of what the README, the docs and the doc comments of public functions show hold", async (t) => {
  const [readme = ""] = snippetsOf(read("README.md"));
  const [errors = ""] = snippetsOf(read("docs/errors.md"));
  const [live = ""] = snippetsOf(read("docs/live-listeners.md"));
  const programs = pages.map((page) => [`${page.replaceAll(/\W+/g, "-")}.ts`, programOf(page)]);
  const folder = projectWith(t, {
    ...commentPrograms(),
    ...(Object.fromEntries(programs) as Record<string, string>),
    "readme.ts": readme,
    "errors.ts": errors,
    "live.ts": live,
    "nats.ts": natsExample(),
  });

  const { code, stdout } = await checkTypes(folder);

  assert.deepEqual([code, stdout], [0, ""]);
});

/** The indented example of NATS, whose server need not be here. */
function natsExample(): string {
  const code = /^ {4}sink\("orders"[^]*?^ {4}\}\)$/m.exec(read("docs/sinks.md"))?.[0] ?? "";
  assert.notEqual(code, "");
  return `import { nats, sink } from "daybook";\nexport const orders =\n${code};\n`;
}
