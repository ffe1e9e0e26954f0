// A real NATS server of a test's own: on a free port of loopback, with its streams in a folder that goes with the test.
import { jetstreamManager, type JetStreamManager, type StoredMsg } from "@nats-io/jetstream";
import { connect, type NodeConnectionOptions } from "@nats-io/transport-node";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { systemClock } from "../../src/core/clock.ts";
import type { TestContext } from "node:test";
import { untilStopped } from "../support/job-stop.ts";
import { cleanup, testFolder } from "../support/open-test.ts";

/** Where the program is, if it is on this machine. */
export const natsProgram = findProgram("nats-server");

function findProgram(name: string): string | undefined {
  // Debian keeps servers where not everybody looks.
  for (const folder of [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"]) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  return undefined;
}

/** Registers tests that need the server; without it one line says that they are missing. */
export function withNats(register: () => void): void {
  if (natsProgram !== undefined) return register();
  console.log(
    `nats-server is not on this machine: the tests of sinks to NATS are not run (apt-get install nats-server)`,
  );
}

export type NatsServer = {
  readonly url: string;
  start(): Promise<void>;
  /** Stops it where it is, and lets it go on: it is there and does not answer. */
  signal(name: "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Ends it without a word, as a crash would. */
  kill(): Promise<void>;
  /** Makes a stream that takes these subjects. */
  stream(name: string, ...subjects: string[]): Promise<void>;
  /** Everything in a stream, in order. */
  messages(stream: string): Promise<StoredMsg[]>;
  /** How many connections of sinks are open. */
  connections(): Promise<number>;
  manage<T>(work: (manager: JetStreamManager) => Promise<T>): Promise<T>;
};

export async function natsServer(
  t: TestContext,
  { config = "", client = {} }: { readonly config?: string; readonly client?: NodeConnectionOptions } = {},
): Promise<NatsServer> {
  const folder = testFolder(t);
  let port = -1;
  let monitor = "";
  let signal: NatsServer["signal"] = async () => undefined;
  let end = async (): Promise<void> => undefined;
  async function start(): Promise<void> {
    const file = join(folder, "nats.conf");
    writeFileSync(
      file,
      `listen: "127.0.0.1:${port}"\nhttp: "127.0.0.1:-1"\nports_file_dir: "${folder}"\njetstream { store_dir: "${folder}/store" }\n${config}\n`,
    );
    const child = spawn(natsProgram ?? "nats-server", ["-c", file], { stdio: ["ignore", "ignore", "pipe"] });
    const ended = once(child, "exit");
    signal = async (name) => {
      child.kill(name);
      if (name === "SIGSTOP") await untilStopped(child.pid ?? 0);
    };
    end = async () => {
      child.kill("SIGKILL");
      await ended;
    };
    let said = "";
    const ready = new Promise<void>((resolve) => {
      child.stderr.on("data", (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes("Server is ready")) resolve();
      });
    });
    await Promise.race([
      ready,
      ended.then(() => {
        throw new Error(`nats-server ended:\n${said}`);
      }),
    ]);
    const ports = await portsOf(join(folder, `nats-server_${child.pid}.ports`));
    port = Number(new URL(ports.nats[0] ?? "").port);
    monitor = ports.monitoring[0] ?? "";
  }
  await start();
  cleanup(t, () => end());

  async function manage<T>(work: (manager: JetStreamManager) => Promise<T>): Promise<T> {
    const connection = await connect({ servers: `127.0.0.1:${port}`, ...client });
    try {
      return await work(await jetstreamManager(connection));
    } finally {
      await connection.close();
    }
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    start,
    signal: (name) => signal(name),
    kill: () => end(),
    stream: (name, ...subjects) => manage(async (manager) => void (await manager.streams.add({ name, subjects }))),
    messages: (stream) =>
      manage(async (manager) => {
        const { state } = await manager.streams.info(stream);
        const all: StoredMsg[] = [];
        // Of an empty one both are zero, which is no message's number.
        for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
          const message = await manager.streams.getMessage(stream, { seq });
          if (message !== null) all.push(message);
        }
        return all;
      }),
    async connections() {
      const answer = await fetch(`${monitor}/connz`);
      const { connections } = (await answer.json()) as { connections: readonly { name?: string }[] };
      return connections.filter(({ name }) => name === "daybook").length;
    },
    manage,
  };
}

// It is written a moment after the server says that it is ready.
async function portsOf(file: string): Promise<{ nats: readonly string[]; monitoring: readonly string[] }> {
  for (;;) {
    try {
      return JSON.parse(readFileSync(file, "utf8")) as Awaited<ReturnType<typeof portsOf>>;
    } catch {
      await systemClock.nextTurn();
    }
  }
}
