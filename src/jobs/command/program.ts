// One program in a process group of its own, so that all it starts can be ended with it.
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import type { Writable } from "node:stream";
import type { Clock, Timer } from "../../core/clock.ts";
import { quote } from "../../core/quote.ts";
import { pidExists } from "../../telemetry/process-identity.ts";

/** A program that could not be started or did not end well. Its run is recorded with this type. */
export function commandError(message: string, cause?: unknown): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.name = "CommandError";
  return error;
}

/** How long a group has after SIGTERM. Less than the engine's own grace, so that a run is over when it says so. */
export const termMs = 3000;

export type ProgramEnd = { readonly exitCode: number | null; readonly signal: string | null };

export type Program = {
  /** Also the number of its group. */
  readonly pid: number;
  /** Asks the group to end, and makes it end after a while. */
  stop(): void;
  readonly stopping: boolean;
  /** Resolves when the first process of the group has ended. */
  readonly ended: Promise<ProgramEnd>;
  /** Ends what is left of the group. After `stop` it has its time, unless its output says that nobody is there. */
  endRest(outputEnded: Promise<void>): Promise<void>;
};

export type ProgramStart = {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly output: Writable;
  readonly clock: Clock;
};

export async function startProgram({ argv, cwd, env, output, clock }: ProgramStart): Promise<Program> {
  const [file = "", ...args] = argv;
  await checkFolder(cwd);
  const child = launch(file, args, { cwd, env, detached: true, stdio: ["ignore", output, output] });
  const { pid } = child;
  if (pid === undefined) throw notStarted(file, (await once(child, "error"))[0]);
  const ended = new Promise<ProgramEnd>((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  const killed = Promise.withResolvers<void>();
  let timer: Timer | undefined;
  let over = false;
  let done = false;

  // While the first process has not been taken note of, its number is its own. Afterwards the number stands for what is
  // left of its group; should a process have it again, then nothing was left and the number is somebody else's.
  function signalGroup(signal: NodeJS.Signals): void {
    if (!over || !pidExists(pid as number)) signalGroupOf(pid as number, signal);
  }
  void ended.then(() => (over = true));

  return {
    pid,
    ended,
    get stopping() {
      return timer !== undefined;
    },
    stop() {
      if (timer !== undefined || done) return;
      signalGroup("SIGTERM");
      timer = clock.after(
        termMs,
        () => {
          signalGroup("SIGKILL");
          killed.resolve();
        },
        { keepAlive: true },
      );
    },
    async endRest(outputEnded) {
      if (timer !== undefined) await Promise.race([outputEnded, killed.promise]);
      timer?.cancel();
      signalGroup("SIGKILL");
      // From here on the number may become somebody else's.
      done = true;
    },
  };
}

function launch(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  try {
    // Never a shell: each element of argv reaches the program as it is.
    return spawn(file, args, { ...options, shell: false });
  } catch (error) {
    throw notStarted(file, error); // some reasons are thrown, others told by an event
  }
}

/** True when there was somebody to signal. */
export function signalGroupOf(group: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false; // nobody is left, or they are not ours to signal
  }
}

// Both a missing program and a missing folder are ENOENT, so the folder is asked first.
async function checkFolder(cwd: string): Promise<void> {
  const found = await stat(cwd).catch((cause: unknown) => {
    throw commandError(`the folder ${quote(cwd)} of the program cannot be entered: make it, or change "cwd"`, cause);
  });
  if (!found.isDirectory()) throw commandError(`${quote(cwd)} is not a folder: change "cwd"`);
}

function notStarted(file: string, cause: unknown): Error {
  const { code } = cause as { code?: unknown };
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such program: install it, give its whole path, or let "env" name PATH',
    EACCES: "it may not be executed: check its mode and that it is a file",
    E2BIG: "its arguments are too long for the system",
  };
  const why = reasons[String(code)] ?? String(code);
  return commandError(`the program ${quote(file)} could not be started (${String(code)}): ${why}`, cause);
}
