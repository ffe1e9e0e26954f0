// One program in a process group of its own, so that all it starts can be ended with it: from its start until it and all it
// started are gone, by itself or because its run has to end.
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, Timer } from "../../core/clock.ts";
import { killPoint } from "../../core/fact.ts";
import { quote } from "../../core/quote.ts";
import { pidExists } from "../../telemetry/process-identity.ts";
import type { LogFile } from "./log-file.ts";

/** Names are taken from the worker's environment, pairs are given. */
export type CommandEnvironment = readonly (string | Readonly<Record<string, string>>)[];

/** Tells every process of a run by whom it was started: an orphan is known by it, and a program may read it. */
export const runVariable = "DAYBOOK_RUN_ID";

/** How long a group has after SIGTERM. Less than the engine's own grace, so that a run is over when it says so. */
export const termMs = 3000;
/** How long the output may stay open when the group has ended: a process that left the group has it. */
const outputMs = 1000;
const outputSteps = 10;

export type ProgramEnd = { readonly exitCode: number | null; readonly signal: string | null };

export type ProgramStart = {
  readonly runId: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: CommandEnvironment;
  readonly log: LogFile;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Writes down the number of its first process, which is also that of its group. */
  note(pid: number): Promise<unknown>;
};

export async function runProgram(start: ProgramStart): Promise<{ end: ProgramEnd; stopped: boolean }> {
  const { clock, signal, log } = start;
  const { reader, writer } = await openPipe();
  let stop = (): void => undefined;
  try {
    signal.throwIfAborted();
    const child = await launch(start, writer);
    const pid = child.pid as number;
    killPoint("command.started");
    const killed = Promise.withResolvers<void>();
    let state: "running" | "ended" | "over" = "running";
    let stopping: Timer | undefined;
    const ended = new Promise<ProgramEnd>((resolve) => {
      child.once("exit", (exitCode, by) => {
        state = "ended";
        resolve({ exitCode, signal: by });
      });
    });
    // While the first process has not been taken note of, its number is its own. Afterwards the number stands for what is
    // left of its group; should a process have it again, then nothing was left and the number is another process's.
    const signalGroup = (by: NodeJS.Signals): void => {
      if (state === "running" || !pidExists(pid)) signalGroupOf(pid, by);
    };
    stop = () => {
      if (stopping !== undefined || state === "over") return;
      signalGroup("SIGTERM");
      const kill = (): void => {
        signalGroup("SIGKILL");
        killed.resolve();
      };
      stopping = clock.after(termMs, kill, { keepAlive: true });
    };
    signal.addEventListener("abort", stop, { once: true });
    // The program has its own by now; while we held ours, the output would never end.
    writer.destroy();
    const outputEnded = log.follow(reader);
    // It may have been aborted while its folder was looked at.
    if (signal.aborted) stop();
    const noted = start.note(pid);
    // A program whose number is not in the book must not go on.
    noted.catch(stop);
    const end = await ended;
    // What is left of a group that was asked to end has its time, unless its output says that no process is there.
    if (stopping !== undefined) await Promise.race([outputEnded, killed.promise]);
    stopping?.cancel();
    signalGroup("SIGKILL");
    // From here on the number may become another process's.
    state = "over";
    const read = new AbortController();
    void giveUpReading(clock, reader, read.signal);
    await outputEnded;
    read.abort();
    await noted;
    return { end, stopped: stopping !== undefined };
  } finally {
    signal.removeEventListener("abort", stop);
    writer.destroy();
    reader.destroy();
  }
}

// One pipe for all that a program says. Its stdout and stderr are the same end of it, so what comes out is in the order
// in which it went in; two pipes would be read one after the other. Node makes no pipes by themselves, so this is a
// socket that no other process can reach, with its name taken away as soon as both ends hold it. `writer` is for the program; ours is
// closed once it has its own.
async function openPipe(): Promise<{ reader: Socket; writer: Socket }> {
  // The folder is the owner's alone.
  const folder = await mkdtemp(join(tmpdir(), "daybook-"));
  const server = createServer({ pauseOnConnect: true });
  try {
    server.listen(join(folder, "output"));
    await once(server, "listening");
    const writer = connect(join(folder, "output"));
    const [[reader]] = (await Promise.all([once(server, "connection"), once(writer, "connect")])) as [
      [Socket],
      unknown,
    ];
    return { reader, writer };
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function launch({ runId, argv, cwd, env }: ProgramStart, output: Socket): Promise<ChildProcess> {
  const [file = "", ...args] = argv;
  // Both a missing program and a missing folder are ENOENT, so the folder is asked first.
  const folder = await stat(cwd).catch((cause: unknown) => {
    throw commandError(`the folder ${quote(cwd)} of the program cannot be entered: make it, or change "cwd"`, cause);
  });
  if (!folder.isDirectory()) throw commandError(`${quote(cwd)} is not a folder: change "cwd"`);
  const options: SpawnOptions = { cwd, env: { ...environmentOf(env), [runVariable]: runId }, detached: true };
  try {
    // Never a shell: each element of argv reaches the program as it is.
    const child = spawn(file, args, { ...options, stdio: ["ignore", output, output], shell: false });
    if (child.pid === undefined) throw (await once(child, "error"))[0];
    return child;
  } catch (cause) {
    const code = String((cause as { code?: unknown }).code);
    const why = notStarted[code] ?? code;
    throw commandError(`the program ${quote(file)} could not be started (${code}): ${why}`, cause);
  }
}

const notStarted: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such program: install it, give its whole path, or let "env" name PATH',
  EACCES: "it may not be executed: check its mode and that it is a file",
  E2BIG: "its arguments are too long for the system",
};

/** What the definition names and nothing else, so that the worker's secrets stay its own. */
function environmentOf(env: CommandEnvironment): Record<string, string> {
  const made: Record<string, string> = {};
  for (const each of env) {
    if (typeof each !== "string") Object.assign(made, each);
    else if (process.env[each] !== undefined) made[each] = process.env[each];
  }
  return made;
}

// In steps, because a loop that was held up for as long finds the time gone and all that is there unread: then one step is.
async function giveUpReading(clock: Clock, reader: Socket, read: AbortSignal): Promise<void> {
  for (let step = 0; step < outputSteps; step++) await clock.sleep(outputMs / outputSteps, read);
  reader.destroy();
}

/** True when there was a process to signal. */
export function signalGroupOf(group: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false; // no process is left, or it is not ours to signal
  }
}

/** A program that could not be started or did not end well. Its run is recorded with this type. */
export function commandError(message: string, cause?: unknown): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.name = "CommandError";
  return error;
}
