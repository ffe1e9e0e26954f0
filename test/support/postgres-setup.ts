// node --test --test-global-setup=test/support/postgres-setup.ts: one server for all the test files of a run. They are
// children of the runner and inherit its environment.
import { flushCompileCache } from "node:module";
import { makeTemplate } from "./postgres.ts";
import { type PostgresServer, startServer } from "./postgres-server.ts";

let server: PostgresServer | undefined;

export async function globalSetup(): Promise<void> {
  await fillCompileCache();
  if (process.env["DAYBOOK_TEST_POSTGRES"]) return;
  server = await startServer("shared");
  process.env["DAYBOOK_TEST_POSTGRES"] = server.url;
  process.env["DAYBOOK_TEST_TEMPLATE"] = await makeTemplate();
}

export async function globalTeardown(): Promise<void> {
  await server?.stop();
}

/** Programs that are killed never write what they compiled, so on a fresh checkout each of them would compile it anew. */
async function fillCompileCache(): Promise<void> {
  await Promise.all([import("../../src/index.ts"), import("../../src/cli/program.ts")]);
  flushCompileCache();
}
