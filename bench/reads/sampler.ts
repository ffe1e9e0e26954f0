// Looks after memory and the WAL from a thread of its own: asking the system about a process takes milliseconds, which would be
// the loop's.
import { readFileSync, statSync } from "node:fs";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export type Most = { readonly memoryMb: number; readonly walMb: number };

export type Sampler = {
  /** The most that was seen since it was last asked: of this process with those that it started, and of the WAL. */
  most(): Promise<Most>;
  stop(): Promise<unknown>;
};

const everyMs = 100;

export function startSampler(walPath: string | null): Sampler {
  const worker = new Worker(new URL(import.meta.url), { workerData: { walPath } });
  return {
    most: () =>
      new Promise((resolve) => {
        worker.once("message", resolve);
        worker.postMessage("most");
      }),
    stop: () => worker.terminate(),
  };
}

function memoryMb(): number {
  const here = process.memoryUsage.rss() / 1e6;
  try {
    const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8");
    const pids = children.trim().split(" ").filter(Boolean);
    return pids.reduce((sum, pid) => sum + privateMb(pid), here);
  } catch {
    return here;
  }
}

// What it shares with others, such as the program itself, is there once.
function privateMb(pid: string): number {
  try {
    const sizes = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").matchAll(/^Private_\w+:\s+(\d+) kB$/gm);
    return [...sizes].reduce((sum, [, kb]) => sum + Number(kb) / 1000, 0);
  } catch {
    return 0;
  }
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort;
  const { walPath } = workerData as { walPath: string | null };
  let most: Most = { memoryMb: 0, walMb: 0 };
  const look = (): void => {
    const wal = walPath === null ? 0 : (statSync(walPath, { throwIfNoEntry: false })?.size ?? 0);
    most = { memoryMb: Math.max(most.memoryMb, memoryMb()), walMb: Math.max(most.walMb, wal / 1_048_576) };
  };
  setInterval(look, everyMs);
  port.on("message", () => {
    look();
    port.postMessage(most);
    most = { memoryMb: 0, walMb: 0 };
  });
}
