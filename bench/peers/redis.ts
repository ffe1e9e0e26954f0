// A Redis of one measurement, on a free port of this machine, in a temporary folder. It answers when what it was told is
// on disk.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { scratch } from "../harness/scratch.ts";

/** Such as "Redis 7.0.15"; undefined where there is none. */
export function redisVersion(): string | undefined {
  try {
    const text = execFileSync("redis-server", ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return `Redis ${/v=(\S+)/.exec(text)?.[1] ?? "of an unknown version"}`;
  } catch {
    return undefined;
  }
}

let count = 0;

export async function withRedis<T>(work: (url: string) => Promise<T>): Promise<T> {
  const dir = scratch(`redis-${++count}`);
  mkdirSync(dir);
  const port = await freePort();
  const options = ["--bind", "127.0.0.1", "--port", `${port}`, "--dir", dir, "--save", ""];
  const server = spawn("redis-server", [...options, "--appendonly", "yes", "--appendfsync", "always"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(server, "exit");
  const end = (): void => void server.kill();
  process.once("exit", end);
  try {
    for await (const line of createInterface(server.stdout)) if (line.includes("Ready to accept connections")) break;
    server.stdout.resume();
    return await work(`redis://127.0.0.1:${port}`);
  } finally {
    process.off("exit", end);
    end();
    await exited;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
