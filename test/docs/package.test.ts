// The package as its users install it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { projectWith, runProgram } from "./snippet.ts";

const program = `
import { registerHooks } from "node:module";
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
const peers = () => ["kysely", "drizzle-orm", "pg", "@nats-io"].filter((name) => loaded.some((url) => url.includes(\`node_modules/\${name}/\`)));
const { open } = await import("daybook");
await using book = await open(":memory:");
console.log(loaded.some((url) => url.endsWith("src/index.ts")), peers());
await import("daybook/kysely");
console.log(peers());
await import("daybook/drizzle");
console.log(peers());
`;

test("daybook loads no peer that a program did not ask for", async (t) => {
  const ran = await runProgram("peers.js", projectWith(t, { "peers.js": program }));

  assert.deepEqual(
    [ran.stderr, ran.stdout.split("\n")],
    ["", ["true []", "[ 'kysely' ]", "[ 'kysely', 'drizzle-orm' ]", ""]],
  );
});
