import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const DEATH_MS_MAX = 60_000; // A process that writes to a slow disk dies when that is done.

/** Kills a postmaster and all its children at once, as a power cut would. A signal to its process group would miss
 *  the children, because each of them leads a group of its own. */
export async function killFamily(postmaster: number): Promise<void> {
  signal(postmaster, "SIGSTOP"); // Stopped, it forks no child that the list would lack.
  const family = [postmaster, ...living((row) => row.parent === postmaster)];
  for (const pid of family) signal(pid, "SIGKILL");

  const deadline = performance.now() + DEATH_MS_MAX;
  while (living((row) => family.includes(row.pid)).length > 0) {
    if (performance.now() > deadline) throw new Error(`PostgreSQL's processes ${family.join(", ")} outlive SIGKILL.`);
    await sleep(5);
  }
}

/** Sends a signal to a process that may have ended a moment ago. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

type Row = { pid: number; parent: number; state: string };

/** A zombie counts as dead: it holds no memory and no file, and where nobody reaps it stays for ever. */
function living(wanted: (row: Row) => boolean): number[] {
  const rows = process.platform === "linux" ? processesFromProc() : processesFromPs();
  return rows.filter((row) => !row.state.startsWith("Z") && wanted(row)).map((row) => row.pid);
}

// Small Linux images have no ps, and other systems have no /proc.
function processesFromProc(): Row[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // The command, in parentheses, may itself hold spaces and parentheses: what follows the last one is regular.
        const [state = "", parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return [{ pid: Number(name), parent: Number(parent), state }];
      } catch {
        return []; // It ended between the listing and the reading.
      }
    });
}

function processesFromPs(): Row[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => {
    const [pid, parent, state = ""] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), state };
  });
}
