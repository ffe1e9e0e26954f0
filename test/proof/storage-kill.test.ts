// The long form of test/storage/kill.test.ts.
import { test } from "node:test";
import { killRounds } from "../storage/kill-rounds.ts";
import { cleanup, testUrl } from "../support/open-test.ts";
import { durablePostgres } from "../support/postgres.ts";

const rounds = 200;
const powerCuts = 20;

test(`sqlite: ${rounds} kills of the writer lose no acknowledged unit and leave no half one`, async (t) => {
  await killRounds(t, { url: await testUrl(t, "sqlite"), rounds });
});

test(`postgres: ${rounds} kills of the writer lose no acknowledged unit and leave no half one`, async (t) => {
  await killRounds(t, { url: await testUrl(t, "postgres"), rounds });
});

test(`postgres: ${powerCuts} kills of the server lose no acknowledged unit and leave no half one`, async (t) => {
  const server = await durablePostgres();
  cleanup(t, () => server.stop());

  await killRounds(t, {
    url: server.url,
    rounds: powerCuts,
    async kill() {
      await server.kill();
      await server.restart();
    },
  });
});
