// Finds the process groups of a run whose worker is gone, by what the system tells of each process.
import { readdirSync, readFileSync } from "node:fs";
import { processStarted } from "../../telemetry/process-identity.ts";
import type { OpenCommand } from "./command-row.ts";
import { runVariable } from "./environment.ts";

/** The groups that are proven to be the run's; none where the system does not tell. */
export function groupsOfRun(row: Pick<OpenCommand, "run_id" | "pid" | "process_started">): number[] {
  const { pid, process_started: started } = row;
  if (pid !== null && started !== null && processStarted(pid) === started) return [pid];
  // Its first process is gone, or its number was never written down; the others carry the run's id.
  const groups = new Set<number>();
  for (const member of processes()) {
    const group = groupOf(member);
    if (group === undefined || (pid !== null && group !== pid) || groups.has(group)) continue;
    if (carries(member, row.run_id)) groups.add(group);
  }
  return [...groups];
}

function processes(): number[] {
  return (read(() => readdirSync("/proc")) ?? []).filter((name) => /^\d+$/.test(name)).map(Number);
}

// The fifth field of /proc/<pid>/stat; the second may hold spaces. A zombie has ended.
function groupOf(pid: number): number | undefined {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  const [state, , group] = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  return state === undefined || state === "Z" || state === "X" ? undefined : Number(group);
}

// Only the owner may read it, so what can be read may also be ended.
function carries(pid: number, runId: string): boolean {
  const environment = read(() => readFileSync(`/proc/${pid}/environ`, "utf8")) ?? "";
  return environment.split("\0").includes(`${runVariable}=${runId}`);
}

// Processes come and go while they are read.
function read<T>(from: () => T): T | undefined {
  try {
    return from();
  } catch {
    return undefined;
  }
}
