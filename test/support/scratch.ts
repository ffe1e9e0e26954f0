import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const RAMDISK = "/dev/shm";
const RAMDISK_BYTES_MIN = 512 * 1024 * 1024;

/** Makes a directory that carries the pid of its maker in its name, so that a later run knows whose it was. */
export function makeScratch(place: string, use: "postgres" | "test"): string {
  const path = mkdtempSync(join(place, `daybook-${use}-${process.pid}-`));
  if (use === "postgres") chmodSync(path, 0o755); // The account that root lends to it must pass through.
  return path;
}

export function removeScratch(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** The ramdisk when it has room (a container often gives it 64 MB), else the temporary directory. */
export function fastPlace(): string {
  if (!existsSync(RAMDISK)) return tmpdir();
  const { bavail, bsize } = statfsSync(RAMDISK);
  return bavail * bsize >= RAMDISK_BYTES_MIN ? RAMDISK : tmpdir();
}

/** Removes what earlier makers left because they were themselves killed. Their server, should it still run, is not
 *  signalled, since its pid may by now be another's: it looks for its lock file once a minute and ends without it. */
export function sweepScratch(): void {
  for (const place of new Set([tmpdir(), RAMDISK].filter((path) => existsSync(path)))) {
    for (const name of readdirSync(place)) {
      const maker = /^daybook-(?:postgres|test)-(\d+)-/.exec(name)?.[1];
      if (maker === undefined || isAlive(Number(maker))) continue;
      try {
        if (statSync(join(place, name)).uid === process.getuid?.()) removeScratch(join(place, name));
      } catch {
        // Another run sweeps at the same time, or the server still writes: the next run finds what is left.
      }
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
