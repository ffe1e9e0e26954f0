// Loaded before the command line, in each of its threads (`slowed` below), so that how fast a machine is decides nothing: it says
// when a signal was heard, a time that is not to be over never is, and a copy is made and then not finished.
import { writeSync } from "node:fs";
import { StatementSync } from "node:sqlite";
import { isMainThread } from "node:worker_threads";

/** The environment of such a command; its timers of so many milliseconds never fire. */
export const slowed = (neverMs?: number): Record<string, string> => ({
  NODE_OPTIONS: `--import=${import.meta.url}`,
  DAYBOOK_TEST_NEVER_MS: String(neverMs ?? "none"),
});

const neverMs = process.env["DAYBOOK_TEST_NEVER_MS"];
if (neverMs !== undefined) {
  const { setTimeout: real } = globalThis;
  const longest = 2 ** 31 - 1;
  globalThis.setTimeout = ((run: () => void, ms?: number) =>
    String(ms) === neverMs ? real(run, longest).unref() : real(run, ms)) as typeof setTimeout;
  for (const name of isMainThread ? (["SIGINT", "SIGTERM"] as const) : []) {
    process.once(name, () => writeSync(1, "heard\n"));
  }
  const { iterate } = StatementSync.prototype;
  Object.assign(StatementSync.prototype, {
    iterate(this: StatementSync, ...values: []) {
      const rows = iterate.apply<StatementSync, [], Iterator<unknown>>(this, values);
      if (!this.sourceSQL.startsWith("vacuum into")) return rows;
      rows.next();
      writeSync(1, "copied\n");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      return rows;
    },
  });
}
