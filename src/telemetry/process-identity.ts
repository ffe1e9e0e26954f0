// Who a process is, so that another process can tell for certain that it is gone. A pid alone is not enough: it is
// reused, and in another pid namespace (a container) the same number is somebody else.
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export type ProcessIdentity = {
  readonly host: string;
  /** Which boot of which kernel; null where the system does not tell. */
  readonly hostBoot: string | null;
  /** The pid namespace; null where there are none. */
  readonly hostNamespace: string | null;
  readonly pid: number;
  /** When the process started, in the kernel's own ticks; tells a reused pid. */
  readonly processStarted: string | null;
};

export function thisProcess(): ProcessIdentity {
  return {
    host: hostname(),
    hostBoot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    hostNamespace: attempt(() => readlinkSync("/proc/self/ns/pid")),
    pid: process.pid,
    processStarted: processStarted(process.pid),
  };
}

/** True only when the process cannot be alive any more. When in doubt it may be, and its silence will tell. */
export function isProvablyGone(
  other: ProcessIdentity,
  self: ProcessIdentity,
  options: { sameMachine: boolean },
): boolean {
  // A file book lives on one machine (its WAL needs shared memory), so another boot of it means the old one is over.
  if (options.sameMachine && other.hostBoot !== null && self.hostBoot !== null && other.hostBoot !== self.hostBoot) {
    return true;
  }
  if (other.host !== self.host) return false;
  if (other.hostBoot !== self.hostBoot || other.hostNamespace !== self.hostNamespace) return false;
  if (!pidExists(other.pid)) return true;
  const started = processStarted(other.pid);
  return started !== null && other.processStarted !== null && started !== other.processStarted;
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code !== "ESRCH";
  }
}

// The 22nd field of /proc/<pid>/stat; the second is the program's name in brackets and may hold spaces. A zombie is
// gone for our purposes, but its parent may be slow to notice, so its state is read as well.
function processStarted(pid: number): string | null {
  return attempt(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? "zombie" : (fields[19] ?? null);
  });
}

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
