import type { TestContext } from "node:test";
import { limits } from "../../src/core/limits.ts";

/** Changes a limit of this thread for one test, so that the test need not wait for it. Threads and processes keep theirs. */
export function setLimit(t: TestContext, name: keyof typeof limits, value: number): void {
  t.mock.property(limits, name, value as never);
}
