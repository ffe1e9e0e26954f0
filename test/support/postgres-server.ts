import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ClusterKind } from "./postgres-cluster.ts";
import type { Command, Reply } from "./postgres-keeper.ts";

/** A PostgreSQL server of this process, in the hands of a keeper that outlives it just long enough to tidy up. */
export type PostgresServer = {
  url: string;
  /** The postmaster's; a restart gives a new one. */
  readonly pid: number;
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Resolves when no process and no file is left. */
  stop(): Promise<void>;
};

export async function startServer(kind: ClusterKind): Promise<PostgresServer> {
  const keeper = fork(fileURLToPath(import.meta.resolve("./postgres-keeper.ts")), [kind], {
    detached: true, // Ctrl-C reaches every process of the terminal's group: the keeper must not be one of them.
    env: { PATH: process.env["PATH"], TMPDIR: process.env["TMPDIR"] },
    execArgv: [], // Not --test.
    // Standard error stays open until the keeper is done, and node --test waits for it: a run does not end before
    // the servers that its files started are gone.
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  let running = await ask(keeper, "start").catch(async (error: unknown) => {
    await dismiss(keeper);
    throw error;
  });
  return {
    url: `postgres://postgres@127.0.0.1:${running.port}/postgres`,
    get pid() {
      return running.pid;
    },
    async kill() {
      await ask(keeper, "kill");
    },
    async restart() {
      running = await ask(keeper, "start");
    },
    stop: () => dismiss(keeper),
  };
}

/** One command at a time: the next reply is taken for the answer. */
async function ask(keeper: ChildProcess, command: Command): Promise<{ pid: number; port: number }> {
  hold(keeper);
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const end = (code: number | null): void => reject(new Error(`The keeper of PostgreSQL ended with ${code}.`));
  keeper.once("message", resolve).once("exit", end).once("error", reject);
  keeper.send(command);
  const reply = await promise.finally(() => {
    keeper.off("message", resolve).off("exit", end).off("error", reject);
    release(keeper);
  });
  if ("failure" in reply) throw new Error(reply.failure);
  return reply;
}

async function dismiss(keeper: ChildProcess): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return;
  keeper.ref();
  const ended = once(keeper, "exit");
  if (keeper.connected) keeper.disconnect();
  await ended;
}

// A server that nobody asks anything must not keep its owner from ending.
function hold(keeper: ChildProcess): void {
  keeper.ref();
  keeper.channel?.ref();
}

function release(keeper: ChildProcess): void {
  keeper.unref();
  keeper.channel?.unref();
}
