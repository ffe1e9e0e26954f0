// Runs the command line as its users do: as a process of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { backends, type Backend } from "../support/open-test.ts";

/** What the engines do differently is below the command line and tested there, and each of these runs is a process of its own:
 *  `npm test` has them on SQLite, and `npm run proof` on both. How a book is named, opened, looked at and run is tested on both
 *  always. */
export const cliBackends: readonly Backend[] = process.env["DAYBOOK_TEST_SEED"] === "random" ? backends : ["sqlite"];

const main = join(import.meta.dirname, "../../src/cli/main.ts");

/** Node keeps the stripped and compiled sources there, by their hash: a third of the time for each of our many runs. */
export const compileCache = join(tmpdir(), "daybook-compile-cache");

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };
export type Running = { child: ChildProcess; ended: Promise<Ended> };
type Settings = { cwd?: string; env?: Record<string, string> };

export async function runCli(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  return startCli(args, settings).ended;
}

export function startCli(args: readonly string[], { cwd, env = {} }: Settings = {}): Running {
  // Only what is given: a developer's own DAYBOOK_BOOK or colours must not decide a test.
  const whole = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache, ...env };
  const child = spawn(process.execPath, [main, ...args], { cwd, env: whole });
  return { child, ended: end(child) };
}

async function end(child: ReturnType<typeof spawn>): Promise<Ended> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the command line was started without its outputs");
  const [out, error] = await Promise.all([text(stdout), text(stderr), closed(child)]);
  return { code: child.exitCode, signal: child.signalCode, stdout: out, stderr: error };
}

async function closed(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

/** The one JSON document that `--json` prints. */
export function parsed(output: string): Record<string, unknown> {
  return JSON.parse(output) as Record<string, unknown>;
}

/** What `--json` prints on standard error when something went wrong. */
export function parsedError(output: string): { code: string; message: string; details: Record<string, unknown> } {
  return (JSON.parse(output) as { error: { code: string; message: string; details: Record<string, unknown> } }).error;
}
