// The facts without which no figure can be compared with another day's.
import { closeSync, fsyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { dirname } from "node:path";
import { median } from "./median.ts";
import { scratch } from "./scratch.ts";

export function describeMachine(): string {
  const [cpu] = cpus();
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  const load = loadavg()[0] ?? 0;
  const busy = load > availableParallelism() / 2 ? ": others are at work here, so read the ratios only" : "";
  return [
    `${availableParallelism()} cores (${cpu?.model.trim() ?? "unknown"}), ${memoryGb} GB, load ${load.toFixed(2)}${busy}`,
    `Node ${process.versions.node}, SQLite ${process.versions.sqlite}, ${process.platform} ${process.arch}`,
    describeDisk(),
  ].join("\n");
}

const filesystems: Readonly<Record<number, string>> = {
  0xef53: "ext",
  0x58465342: "xfs",
  0x9123683e: "btrfs",
  0x2fc12fc1: "zfs",
  0x794c7630: "overlay",
  0x01021994: "tmpfs",
  0x01021997: "9p",
  0x6969: "nfs",
};

function describeDisk(): string {
  const path = scratch("sync");
  const { type } = statfsSync(dirname(path));
  const name = filesystems[type] ?? `filesystem of type 0x${type.toString(16)}`;
  const syncMs = median(syncTimes(path));
  const free = name === "tmpfs" ? ": memory, so full durability costs nothing here and its figures mean little" : "";
  return `${dirname(path)} (${name}): writing 4 KB and syncing takes ${syncMs.toFixed(2)} ms${free}`;
}

// About what SQLite does at each commit with synchronous=FULL: pages go to the WAL, then it waits for the disk. The file
// is written over, as a WAL is once it has its full size.
function syncTimes(path: string): number[] {
  const page = Buffer.alloc(4096, 1);
  const file = openSync(path, "w");
  try {
    return Array.from({ length: 400 }, (_, count) => {
      const begun = performance.now();
      writeSync(file, page, 0, page.length, (count % 200) * page.length);
      fsyncSync(file);
      return performance.now() - begun;
    }).slice(200);
  } finally {
    closeSync(file);
  }
}
