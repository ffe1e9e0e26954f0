// What happened according to somebody other than the book: each process writes its own file, line by line and before it
// goes on, so what it did is known even after it was killed. Times are of the monotonic clock, which the processes of one
// machine share.
import { openSync, readFileSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/core/clock.ts";

/** `ack`: an enqueue was answered. `start` and `end`: a handler began and was about to return. */
export type Deed = "ack" | "start" | "end";

export type Entry = {
  readonly deed: Deed;
  readonly pid: number;
  readonly jobId: string;
  readonly runId: string;
  readonly key: string;
  readonly atMs: number;
};

export type Ledger = { note(deed: Deed, of: { jobId: string; runId?: string; key?: string }): void };

export function openLedger(folder: string): Ledger {
  const file = openSync(join(folder, `${process.pid}.ledger`), "a");
  return {
    note(deed, { jobId, runId = "-", key = "-" }) {
      writeSync(file, `${deed} ${process.pid} ${jobId} ${runId} ${key} ${systemClock.monotonic()}\n`);
    },
  };
}

/** All ledgers of a folder, by time. */
export function readLedgers(folder: string): Entry[] {
  const entries = readdirSync(folder)
    .filter((name) => name.endsWith(".ledger"))
    .flatMap((name) => wholeLines(readFileSync(join(folder, name), "utf8")))
    .map((line) => line.split(" "))
    .map(([deed, pid, jobId, runId, key, at]) => ({
      deed: deed as Deed,
      pid: Number(pid),
      jobId: jobId ?? "",
      runId: runId ?? "",
      key: key ?? "",
      atMs: Number(at),
    }));
  return entries.toSorted((one, other) => one.atMs - other.atMs);
}

// A process that was killed while it wrote leaves half a line, of a deed that it had not done yet.
function wholeLines(text: string): string[] {
  return text.split("\n").slice(0, -1);
}
