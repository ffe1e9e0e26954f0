import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Binaries, findBinaries } from "./postgres-binaries.ts";
import { fastPlace, makeScratch } from "./scratch.ts";

/** Shared: fast and forgetful, for every test of a run. Durable: keeps its promises, for the tests of a crash. */
export type ClusterKind = "shared" | "durable";

/** PostgreSQL's word for a data directory and what it takes to run a server on it. */
export type Cluster = { data: string; binaries: Binaries; settings: string[] };

const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=300",
  "max_pred_locks_per_transaction=256",
  "shared_buffers=64MB",
  "max_wal_size=256MB", // A ramdisk of 512 MB must suffice.
  "dynamic_shared_memory_type=mmap", // Inside the data directory, so that nothing outlives a kill.
  "timezone=UTC",
  "log_timezone=UTC",
];
const FORGETFUL = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/** Every directory made is first told to `onScratch`, so that it can be removed even when a later step fails. */
export function createCluster(kind: ClusterKind, onScratch: (path: string) => void): Cluster {
  const scratch = (place: string): string => {
    const path = makeScratch(place, "postgres");
    onScratch(path);
    return path;
  };
  const binaries = findBinaries(() => scratch(tmpdir())); // A ramdisk often forbids running programs.
  const data = join(scratch(kind === "durable" ? tmpdir() : fastPlace()), "data");

  mkdirSync(data, { mode: 0o700 });
  if (binaries.account) chownSync(data, binaries.account.uid, binaries.account.gid);
  const options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"];
  execFileSync(join(binaries.bin, "initdb"), ["-D", data, ...options], { ...binaries.as, stdio: "pipe" });
  return { data, binaries, settings: kind === "durable" ? SETTINGS : [...SETTINGS, ...FORGETFUL] };
}
