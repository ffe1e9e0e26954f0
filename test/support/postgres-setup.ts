// node --test --test-global-setup=test/support/postgres-setup.ts: one server for all the test files of a run. They are
// children of the runner and inherit its environment.
import { makeTemplate } from "./postgres.ts";
import { type PostgresServer, startServer } from "./postgres-server.ts";

let server: PostgresServer | undefined;

export async function globalSetup(): Promise<void> {
  if (process.env["DAYBOOK_TEST_POSTGRES"]) return;
  server = await startServer("shared");
  process.env["DAYBOOK_TEST_POSTGRES"] = server.url;
  process.env["DAYBOOK_TEST_TEMPLATE"] = await makeTemplate();
}

export async function globalTeardown(): Promise<void> {
  await server?.stop();
}
