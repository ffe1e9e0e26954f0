// Runs the command line as its users do. What a command says and how it ends is found out in this process, a hundred times
// as fast as in one of its own; signals, pipes, workers and what a user's file leaves open are tested with `startCli`.
import { AsyncLocalStorage } from "node:async_hooks";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { reportFailure } from "../../src/cli/failure.ts";
import { runProgram } from "../../src/cli/program.ts";
import { compileCache } from "../support/compile-cache.ts";
import { backends, type Backend } from "../support/open-test.ts";

/** What the engines do differently is below the command line and tested there: `npm test` has these on SQLite, and `npm run
 *  proof` on both. How a book is named, opened, looked at and run is tested on both always. */
export const cliBackends: readonly Backend[] = process.env["DAYBOOK_TEST_SEED"] === "random" ? backends : ["sqlite"];

const main = join(import.meta.dirname, "../../src/cli/main.ts");

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };
export type Running = { child: ChildProcess; ended: Promise<Ended> };
type Settings = { cwd?: string; env?: Record<string, string> };

// A user's file that is loaded here imports the package, and finds it as the sources of this repo.
const sources = import.meta.resolve("../../src/index.ts");
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "daybook" ? { url: sources, shortCircuit: true } : next(specifier, context),
});

let turn: Promise<unknown> = Promise.resolve();

/** Runs a command to its end. Directory, environment and exit code belong to the whole process, so one runs at a time. */
export function runCli(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const ended = turn.then(() => runHere(args, settings));
  turn = ended.catch(() => undefined);
  return ended;
}

async function runHere(args: readonly string[], { cwd = process.cwd(), env = {} }: Settings): Promise<Ended> {
  const before = { cwd: process.cwd(), env: process.env, exitCode: process.exitCode };
  const said = { stdout: "", stderr: "" };
  const json = args.includes("--json");
  process.chdir(cwd);
  process.env = { ...onlyWhatIsGiven(env), NODE_COMPILE_CACHE: compileCache, NO_COLOR: "1" };
  process.exitCode = 0;
  try {
    await speaker.run(said, () => runProgram(args, { json }));
  } catch (thrown) {
    process.exitCode = speaker.run(said, () => reportFailure(thrown, { json }));
  }
  const code = Number(process.exitCode);
  process.chdir(before.cwd);
  process.env = before.env;
  process.exitCode = before.exitCode;
  return { code, signal: null, ...said };
}

// What a command writes is its own; what the runner of the tests writes meanwhile goes where it always does.
const speaker = new AsyncLocalStorage<{ stdout: string; stderr: string }>();
for (const name of ["stdout", "stderr"] as const) {
  const stream = process[name];
  const write = stream.write.bind(stream) as (...given: unknown[]) => boolean;
  stream.write = (...given: unknown[]): boolean => {
    const said = speaker.getStore();
    if (said === undefined) return write(...given);
    said[name] += String(given[0]);
    return true;
  };
}

// A command that loaded a user's file ends its process half a second after its work; here that would be the tests' own.
const { exit } = process;
process.exit = (code) => (speaker.getStore() === undefined ? exit(code) : (undefined as never));

export function startCli(args: readonly string[], { cwd, env = {} }: Settings = {}): Running {
  const whole = { ...onlyWhatIsGiven(env), NODE_COMPILE_CACHE: compileCache };
  const child = spawn(process.execPath, [main, ...args], { cwd, env: whole });
  return { child, ended: end(child) };
}

/** A developer's own DAYBOOK_BOOK or colours must not decide a test. */
function onlyWhatIsGiven(env: Record<string, string>): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], ...env };
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
