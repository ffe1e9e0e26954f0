// Starts the program beside this file as a real process, talks with it, and kills it when the test ends.
import { type ChildProcess, fork } from "node:child_process";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { compileCache } from "./compile-cache.ts";
import { cleanup } from "./open-test.ts";
import type { Command, Said, Start } from "./job-program.ts";

export type End = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
};

export type JobProcess = {
  readonly pid: number;
  tell(command: Command): void;
  /** The next message of that kind; one that has come already counts, once. */
  hear<Kind extends Said["said"]>(kind: Kind): Promise<Extract<Said, { said: Kind }>>;
  /** Every message so far, also those that were heard. */
  readonly said: readonly Said[];
  signal(signal: NodeJS.Signals): void;
  /** Kills it and resolves once the process is gone. */
  kill(): Promise<void>;
  /** Before this moment, on the monotonic clock, it was not killed by `kill`. */
  readonly killedAtMs: number | undefined;
  readonly ended: Promise<End>;
};

type Waiting = { kind: string; resolve(said: Said): void; reject(error: Error): void };

export function startJobProcess(
  t: TestContext,
  start: Start,
  options: { env?: Record<string, string> } = {},
): JobProcess {
  t.signal.throwIfAborted(); // nobody would end it
  const program = fileURLToPath(import.meta.resolve("./job-program.ts"));
  const child = fork(program, [JSON.stringify(start)], {
    execArgv: [], // Not --test.
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache, ...options.env },
  });
  const exit = Promise.withResolvers<[code: number | null, signal: string | null]>();
  const failures: Error[] = [];
  child.once("exit", (code, signal) => exit.resolve([code, signal]));
  // One that could not be started has no end; a message to one that was killed says nothing that its end does not.
  child.on("error", (error) => {
    if (child.pid !== undefined) return;
    failures.push(error);
    exit.resolve([null, null]);
  });
  const ended = Promise.all([exit.promise, child.stderr === null ? "" : text(child.stderr)]).then(
    ([[code, signal], stderr]): End => ({ code, signal, stderr: [stderr, ...failures].join("\n") }),
  );
  let killedAtMs: number | undefined;
  const kill = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      killedAtMs ??= systemClock.monotonic();
      child.kill("SIGKILL");
    }
    await ended;
  };
  cleanup(t, kill);
  return {
    pid: child.pid ?? 0,
    tell: (command) => void (child.connected && child.send(command, () => undefined)),
    ...listenTo(child, ended),
    signal: (signal) => void child.kill(signal),
    kill,
    get killedAtMs() {
      return killedAtMs;
    },
    ended,
  };
}

function listenTo(child: ChildProcess, ended: Promise<End>): Pick<JobProcess, "hear" | "said"> {
  const said: Said[] = [];
  const unheard: Said[] = [];
  const waiting: Waiting[] = [];
  let end: End | undefined;
  child.on("message", (message: Said) => {
    said.push(message);
    const index = waiting.findIndex((each) => each.kind === message.said);
    if (index === -1) unheard.push(message);
    else waiting.splice(index, 1)[0]?.resolve(message);
  });
  const tooLate = (kind: string): Error =>
    new Error(`the process ended (${end?.code ?? end?.signal}) before it said "${kind}": ${end?.stderr}`);
  void ended.then((how) => {
    end = how;
    for (const { kind, reject } of waiting) reject(tooLate(kind));
  });
  return {
    said,
    hear: <Kind extends Said["said"]>(kind: Kind) =>
      new Promise<Extract<Said, { said: Kind }>>((resolve, reject) => {
        const index = unheard.findIndex((each) => each.said === kind);
        if (index !== -1) resolve(unheard.splice(index, 1)[0] as Extract<Said, { said: Kind }>);
        else if (end !== undefined) reject(tooLate(kind));
        else waiting.push({ kind, resolve: resolve as (heard: Said) => void, reject });
      }),
  };
}
