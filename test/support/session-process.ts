// Starts the program beside this file as a real process, talks with it, and kills it when the test ends.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { cleanup } from "./open-test.ts";
import type { Command, Said, Start } from "./session-program.ts";

export type SessionProcess = {
  readonly pid: number;
  readonly sessionId: string;
  /** Sends the command without waiting for anything. */
  tell(command: Command): void;
  /** The next message of that kind; one that has come already counts, once. */
  hear<Kind extends Said["said"]>(kind: Kind): Promise<Extract<Said, { said: Kind }>>;
  signal(signal: NodeJS.Signals): void;
  /** Kills it and resolves once the process is gone. */
  kill(): Promise<void>;
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
};

type Waiting = { readonly kind: string; resolve(said: Said): void };

export async function startProcess(t: TestContext, start: Start): Promise<SessionProcess> {
  const program = fileURLToPath(import.meta.resolve("./session-program.ts"));
  const child = fork(program, [JSON.stringify(start)], {
    execArgv: [], // Not --test.
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const ended = Promise.all([once(child, "exit"), child.stderr === null ? "" : text(child.stderr)]).then(
    ([[code], stderr]) => ({ code: code as number | null, stderr }),
  );
  const kill = async (): Promise<void> => {
    if (isRunning(child)) child.kill("SIGKILL");
    await ended;
  };
  cleanup(t, kill);
  const hear = listenTo(child, ended);
  const { sessionId } = await hear("open");
  return {
    pid: child.pid ?? 0,
    sessionId,
    tell: (command) => void child.send(command),
    hear,
    signal: (signal) => void child.kill(signal),
    kill,
    ended,
  };
}

function listenTo(child: ChildProcess, ended: SessionProcess["ended"]): SessionProcess["hear"] {
  const heard: Said[] = [];
  const waiting: Waiting[] = [];
  child.on("message", (said: Said) => {
    const index = waiting.findIndex((each) => each.kind === said.said);
    if (index === -1) heard.push(said);
    else waiting.splice(index, 1)[0]?.resolve(said);
  });
  const tooLate = async (kind: string): Promise<never> => {
    const { code, stderr } = await ended;
    throw new Error(`the process ended with ${code} before it said "${kind}": ${stderr}`);
  };
  return <Kind extends Said["said"]>(kind: Kind) => {
    const next = new Promise<Said>((resolve) => {
      const index = heard.findIndex((each) => each.said === kind);
      if (index === -1) waiting.push({ kind, resolve });
      else resolve(heard.splice(index, 1)[0] as Said);
    });
    return Promise.race([next, tooLate(kind)]) as Promise<Extract<Said, { said: Kind }>>;
  };
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}
