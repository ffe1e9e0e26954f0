// Starts the program beside this file as a real process that sends calls, and kills it when the test ends.
import { fork } from "node:child_process";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { compileCache } from "./compile-cache.ts";
import { cleanup } from "./open-test.ts";

export type CallProcess = {
  /** The ids of the calls that it was acknowledged. */
  readonly submitted: readonly string[];
  hear(said: "working" | "submitted"): Promise<void>;
  kill(): Promise<void>;
  readonly ended: Promise<string | null>;
};

export function startCallProcess(
  t: TestContext,
  start: { readonly url: string; readonly submits?: number; readonly target?: string },
  env: Record<string, string> = {},
): CallProcess {
  const program = fileURLToPath(import.meta.resolve("./call-program.ts"));
  const child = fork(program, [JSON.stringify(start)], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache, ...env },
  });
  const submitted: string[] = [];
  const heard = new Set<string>();
  const waiting: { said: string; resolve: () => void }[] = [];
  child.on("message", (message: { said: string; id?: string }) => {
    if (message.id !== undefined) submitted.push(message.id);
    heard.add(message.said);
    for (const each of waiting) if (each.said === message.said) each.resolve();
  });
  const ended = once(child, "exit").then(([, signal]) => signal as string | null);
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  cleanup(t, kill);
  return {
    submitted,
    hear: (said) => new Promise((resolve) => (heard.has(said) ? resolve() : waiting.push({ said, resolve }))),
    kill,
    ended,
  };
}
