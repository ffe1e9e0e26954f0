// Keeps a number of processes running, as an operator's supervisor would: one that ends is started again.
import type { TestContext } from "node:test";
import { cleanup } from "./open-test.ts";
import { startJobProcess, type JobProcess } from "./job-process.ts";
import type { Start } from "./job-program.ts";

export type Supervisor = {
  /** Those that are running, and those that are just starting. */
  readonly running: readonly JobProcess[];
  /** Every process that was ever started. */
  readonly all: readonly JobProcess[];
  /** Pids of those that have ended. */
  readonly gone: ReadonlySet<number>;
  /** What those said that ended without being killed. */
  readonly failures: readonly string[];
};

export type Role = { readonly start: Start; readonly count: number; readonly ready?: (process: JobProcess) => void };

export function supervise(t: TestContext, roles: readonly Role[]): Supervisor {
  const running = new Set<JobProcess>();
  const all: JobProcess[] = [];
  const gone = new Set<number>();
  const failures: string[] = [];
  let retired = false;

  function keep(role: Role): void {
    if (retired || t.signal.aborted) return;
    const child = startJobProcess(t, role.start);
    cleanup(t, () => (retired = true)); // before it is killed, which else would start the next
    running.add(child);
    all.push(child);
    role.ready?.(child);
    void child.ended.then(({ signal, code, stderr }) => {
      if (signal !== "SIGKILL") failures.push(`${code ?? signal}: ${stderr}`);
      running.delete(child);
      gone.add(child.pid);
      keep(role);
    });
  }
  for (const role of roles) for (let count = 0; count < role.count; count++) keep(role);
  return {
    get running() {
      return [...running];
    },
    all,
    gone,
    failures,
  };
}
