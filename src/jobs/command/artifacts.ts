// What a program made: the files that its definition's patterns find under its folder, with size and hash. Only those
// that changed since the run began, by the file system's own clock: a folder is often shared by many runs. (Not the time
// of the content, which programs like to copy along with it, but that of the file's entry.)
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { glob, open, realpath } from "node:fs/promises";
import { join, posix, relative, sep } from "node:path";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";

export type Artifact = { readonly path: string; readonly bytes: number; readonly sha256: string };
export type Artifacts = {
  readonly artifacts: readonly Artifact[];
  /** How many more files there were than are listed. */
  readonly artifactsLeftOut: number;
};

/** Beyond this no more files are looked for, so that a pattern that finds a whole disk comes to an end. */
const matchesMax = 10 * limits.commandArtifactsMax;

export function checkPatterns(job: string, patterns: readonly string[]): readonly string[] {
  const given: unknown = patterns;
  if (!Array.isArray(given)) throw invalid(`artifacts of command "${job}" is a list of patterns: ["out/*.png"]`);
  for (const pattern of given as readonly unknown[]) {
    const good = typeof pattern === "string" && pattern !== "" && !pattern.includes("\0");
    if (good && !posix.isAbsolute(pattern) && !/(^|[/{,])\.\.($|[/},])/.test(pattern)) continue;
    const advice = 'patterns stay under "cwd", without ".." or "/"';
    throw invalid(`artifacts of command "${job}" has ${quote(pattern)}: ${advice}`);
  }
  return patterns;
}

export async function collectArtifacts(
  patterns: readonly string[],
  { cwd, sinceNs, signal }: { cwd: string; sinceNs: bigint; signal: AbortSignal },
): Promise<Artifacts> {
  const artifacts: Artifact[] = [];
  let artifactsLeftOut = 0;
  if (patterns.length === 0) return { artifacts, artifactsLeftOut };
  const root = await realpath(cwd);
  let bytes = 0;
  for (const path of await matches(patterns, root, signal)) {
    signal.throwIfAborted();
    const full = artifacts.length >= limits.commandArtifactsMax || bytes > limits.commandArtifactsBytesMax;
    const artifact = await describeFile(path, { root, sinceNs, full, signal });
    if (artifact === "left out") artifactsLeftOut++;
    else if (artifact !== undefined) {
      artifacts.push(artifact);
      bytes += JSON.stringify(artifact).length;
    }
  }
  return { artifacts, artifactsLeftOut };
}

async function matches(patterns: readonly string[], root: string, signal: AbortSignal): Promise<string[]> {
  const paths = new Set<string>();
  for await (const path of glob(patterns, { cwd: root })) {
    signal.throwIfAborted();
    paths.add(path);
    if (paths.size >= matchesMax) break;
  }
  return [...paths].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Undefined for what is no file of this run: a folder, a link that leads out, something older, or gone by now. */
async function describeFile(
  path: string,
  { root, sinceNs, full, signal }: { root: string; sinceNs: bigint; full: boolean; signal: AbortSignal },
): Promise<Artifact | "left out" | undefined> {
  const real = await realpath(join(root, path)).catch(() => undefined);
  if (real === undefined || !real.startsWith(root.endsWith(sep) ? root : root + sep)) return undefined;
  // A named pipe would wait for its other end, and a link that has just been put there would be followed.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(real, flags).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const status = await file.stat({ bigint: true });
    if (!status.isFile() || status.ctimeNs < sinceNs) return undefined;
    if (full) return "left out";
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of file.createReadStream({ autoClose: false, signal }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    return { path: relative(root, join(root, path)), bytes, sha256: hash.digest("hex") };
  } finally {
    await file.close().catch(() => undefined);
  }
}
