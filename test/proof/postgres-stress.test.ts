// Eight processes do everything at once on one PostgreSQL book for a minute. `DAYBOOK_TEST_STRESS_MS` asks for another time.
import { test } from "node:test";
import { stress } from "../support/job-stress.ts";

const ms = Number(process.env["DAYBOOK_TEST_STRESS_MS"] ?? 60_000);

test(`eight processes use every verb of jobs for ${ms} ms, with kills and lost connections, and nothing deadlocks or breaks`, async (t) => {
  await stress(t, { processes: 8, ms, killEveryMs: 4000 });
});
