// Retention of jobs for tests that have an engine and no book.
import { checkJobRule, retainJobs, type JobRule, type RetainedJobs } from "../../src/jobs/retain/retain.ts";
import { sql } from "../../src/storage/sql.ts";
import type { TestEngine } from "./open-engine.ts";

type Leave = JobRule & { readonly dryRun?: boolean };

/** Removes the ended jobs of a tenant that fit the rule, whatever made them. */
export async function leave(
  { engine }: Pick<TestEngine, "engine">,
  { dryRun = false, ...rule }: Leave,
  tenant = "default",
): Promise<RetainedJobs> {
  const rules = [checkJobRule(rule, "the rule")];
  const parts = [{ which: sql`job.seq > 0`, rules }];
  return retainJobs(engine, tenant, { parts, byHand: rules, now: engine.store.time.atLeast(), dryRun });
}
