// Starts one of the programs beside this file (child-*.ts) as a real process and reads what it says, line by line.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { compileCache } from "./compile-cache.ts";
import { cleanup } from "./open-test.ts";

export type Child = {
  /** Everything it said so far. */
  readonly lines: readonly string[];
  /** Resolves once it has said the line, also when it did so before; rejects when it ends without. */
  said(line: string): Promise<void>;
  /** Resolves once it has said that many lines. */
  saidLines(count: number): Promise<void>;
  tell(line: string): void;
  kill(): void;
  /** Resolves when the process is gone and everything it said has been read. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stderr: string }>;
};

export type ChildOptions = {
  readonly env?: Record<string, string>;
  readonly uid?: number;
  readonly gid?: number;
};

export function startChild(t: TestContext, name: string, args: readonly string[], options: ChildOptions = {}): Child {
  const { env, ...account } = options;
  const program = fileURLToPath(import.meta.resolve(`./child-${name}.ts`));
  const child = spawn(process.execPath, [program, ...args], {
    ...account,
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache, ...env },
  });
  child.stdin.on("error", () => undefined); // it may be gone before it has read everything
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let over = false;
  const notify = (): void => waiting.forEach((look) => look());
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => {
    lines.push(line);
    notify();
  });
  const ended = Promise.all([once(child, "exit"), once(reader, "close"), text(child.stderr)]).then(
    ([[code, signal], , stderr]) => {
      over = true;
      notify();
      return { code: code as number | null, signal: signal as string | null, stderr };
    },
  );
  const kill = (): void => void child.kill("SIGKILL");
  cleanup(t, async () => {
    kill();
    await ended;
  });

  const until = (isSo: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (isSo()) resolve();
        else if (over) void ended.then(({ stderr }) => reject(new Error(`child-${name} ended too soon: ${stderr}`)));
        else return;
        waiting.delete(look);
      };
      waiting.add(look);
      look();
    });

  return {
    lines,
    said: (line) => until(() => lines.includes(line)),
    saidLines: (count) => until(() => lines.length >= count),
    tell: (line) => void child.stdin.write(`${line}\n`),
    kill,
    ended,
  };
}
