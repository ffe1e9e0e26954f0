// Identifies a process, so that another process can tell for certain that it is gone. A pid is not enough: it is reused, and in
// another pid namespace (a container) the same number is another process.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
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

/** The pid namespace that the kernel itself starts in has this number on every Linux. */
const initialNamespace = "pid:[4026531836]";

export function thisProcess(): ProcessIdentity {
  return {
    host: hostname(),
    hostBoot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    hostNamespace: attempt(() => readlinkSync("/proc/self/ns/pid")),
    pid: process.pid,
    processStarted: processStarted(process.pid),
  };
}

/** True only when the process cannot be alive. In doubt it is false, and the session's silence will tell. */
export function isProvablyGone(
  other: ProcessIdentity,
  self: ProcessIdentity,
  options: { sameMachine: boolean },
): boolean {
  if (other.host !== self.host) return false;
  // A file book lives on one machine (its WAL needs shared memory), so every process of an earlier boot is gone. A container may
  // see a boot id of its own, so only processes outside of containers are judged by it.
  const bothOutside = other.hostNamespace === initialNamespace && self.hostNamespace === initialNamespace;
  if (options.sameMachine && bothOutside && other.hostBoot !== self.hostBoot) {
    return other.hostBoot !== null && self.hostBoot !== null;
  }
  if (other.hostBoot !== self.hostBoot || other.hostNamespace !== self.hostNamespace) return false;
  // Without a boot id, two machines of one name cannot be told apart.
  if (other.hostBoot === null && !options.sameMachine) return false;
  if (!pidExists(other.pid)) return true;
  const started = processStarted(other.pid);
  return started !== null && other.processStarted !== null && started !== other.processStarted;
}

export function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: unknown }).code !== "ESRCH";
  }
}

// The 22nd field of /proc/<pid>/stat. A zombie counts as gone, although its parent may be slow to reap it, so the state is read
// as well.
export function processStarted(pid: number): string | null {
  // A container may see the /proc of its host, where its own pids are numbers of other processes.
  if (attempt(() => readlinkSync("/proc/self")) !== String(process.pid)) return null;
  const fields = processFields(pid);
  return fields?.[0] === "Z" ? "zombie" : (fields?.[19] ?? null);
}

/** The process groups in which a process carries this `NAME=value` in its environment, or only `among` if it is one; none where the
 *  system does not tell. */
export function groupsCarrying(entry: string, among: number | null): number[] {
  const groups = new Set<number>();
  for (const member of (attempt(() => readdirSync("/proc")) ?? []).filter((name) => /^\d+$/.test(name))) {
    const [state = "X", , number] = processFields(Number(member)) ?? [];
    const group = Number(number);
    // A zombie has ended.
    if (/[ZX]/.test(state) || (among !== null && group !== among) || groups.has(group)) continue;
    // Only the owner may read it, so what can be read may also be ended.
    const environment = attempt(() => readFileSync(`/proc/${member}/environ`, "utf8")) ?? "";
    if (environment.split("\0").includes(entry)) groups.add(group);
  }
  return [...groups];
}

/** The fields of /proc/<pid>/stat from the third on, which is its state; the second is the program's name in brackets and
 *  may hold spaces. Null where the system does not tell. */
function processFields(pid: number): string[] | null {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  return stat === null ? null : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Null when the read fails, because processes come and go meanwhile. */
function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
