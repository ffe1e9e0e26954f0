import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Cluster } from "./postgres-cluster.ts";
import { killFamily, signal } from "./postgres-processes.ts";

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;
const PORT_ATTEMPTS_MAX = 5;

/** The first process of a running server, the parent of all its others. */
export type Postmaster = { child: ChildProcess; pid: number; port: number };

/** Starts a server on `port`, or else on a free one. Another process may take the free port between the probe and the
 *  start, so a few are tried. */
export async function startPostmaster(cluster: Cluster, port?: number): Promise<Postmaster> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(cluster, port ?? (await findPort()));
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes("could not bind");
      if (!isTaken || port !== undefined || attempt === PORT_ATTEMPTS_MAX) throw error;
    }
  }
}

/** A port below those that systems hand out by themselves, so that nobody's outgoing connection takes it while a
 *  killed server is down. */
async function findPort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const probe = createServer().listen(port, "127.0.0.1");
    const isFree = await once(probe, "listening").then(
      () => true,
      () => false,
    );
    if (isFree) {
      probe.close();
      await once(probe, "close");
      return port;
    }
  }
}

async function launch({ binaries, data, settings }: Cluster, port: number): Promise<Postmaster> {
  const flags = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const child = spawn(join(binaries.bin, "postgres"), flags, {
    ...binaries.as,
    detached: true, // Neither Ctrl-C nor a signal to the tests' process group may reach it before its keeper does.
    stdio: ["ignore", "ignore", "pipe"],
  });

  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let log = "";
  const timer = setTimeout(() => child.kill("SIGQUIT"), START_MS_MAX);
  child.once("error", reject);
  child.once("close", (code) => reject(new Error(`PostgreSQL ended with ${code} before it was ready:\n${log}`)));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
    if (log.includes("ready to accept connections")) resolve();
  });
  await promise.finally(() => clearTimeout(timer));
  child.stderr.removeAllListeners("data").resume(); // Unread, the pipe would fill and the server would halt.

  if (child.pid === undefined) throw new Error("PostgreSQL runs but has no pid.");
  return { child, pid: child.pid, port };
}

/** Asks for a fast shutdown, then for an immediate one, and takes no third refusal. */
export async function stopPostmaster(cluster: Cluster, postmaster: Postmaster): Promise<void> {
  for (const name of ["SIGINT", "SIGQUIT"] as const) {
    if (hasEnded(postmaster)) return;
    const ended = once(postmaster.child, "exit", { signal: AbortSignal.timeout(STOP_MS_MAX) });
    signal(postmaster.pid, name);
    await ended.catch(() => undefined);
  }
  await killPostmaster(cluster, postmaster);
}

/** Ends the server without a warning, as a power cut would. */
export async function killPostmaster({ data }: Cluster, postmaster: Postmaster): Promise<void> {
  if (hasEnded(postmaster)) return;
  const ended = once(postmaster.child, "exit");
  await killFamily(postmaster.pid);
  await ended;
  releaseMemory(data);
}

const hasEnded = ({ child }: Postmaster): boolean => child.exitCode !== null || child.signalCode !== null;

/** A power cut also clears the shared memory, whose id is the last word of the lock file's seventh line. A start on
 *  the same data would do it; without this, a server that is killed and never started again leaves it behind. */
function releaseMemory(data: string): void {
  const id = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[6]?.trim().split(/\s+/)[1];
  if (id === undefined) return;
  try {
    execFileSync("ipcrm", ["-m", id], { stdio: "ignore" });
  } catch {
    // It is gone already, or there is no ipcrm here.
  }
}
