// A program for tests of commands that says who it is over a socket, so that a test knows when it began and when it
// is gone without asking again and again.
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { cleanup, testFolder } from "./open-test.ts";
import { until } from "./session-row.ts";

export type Reporter = {
  readonly role: string;
  readonly pid: number;
  /** Resolves when it says the word. */
  said(word: string): Promise<void>;
  /** Resolves when the process is gone. */
  readonly gone: Promise<void>;
};

export type Reports = {
  /** The params that let `program` report here. */
  params(role: Role): { script: string; socket: string; role: Role };
  /** The next process of that role. */
  hear(role: string): Promise<Reporter>;
};

/** `alone` waits for ever, `deaf` also ignores SIGTERM; `parent` has a `child`, `deaf-parent` has a `deaf` one. */
export type Role = "alone" | "deaf" | "parent" | "deaf-parent";

const script = `
import { connect } from "node:net";
import { spawn } from "node:child_process";
const [, self, path, role] = process.argv;
const socket = connect(path, () => {
  console.log(role, "began"); // before anybody hears of it, and may end it
  socket.write(JSON.stringify({ role, pid: process.pid }) + "\\n");
  if (role === "parent") spawn(process.execPath, [self, path, "child"], { stdio: "inherit" });
  if (role === "deaf-parent") spawn(process.execPath, [self, path, "deaf"], { stdio: "inherit" });
  if (role === "deaf") process.on("SIGTERM", () => socket.write("term\\n"));
  if (role === "deaf" || role === "alone") socket.write("ready\\n");
});
// Only the test closes it.
socket.on("data", () => process.exit(0));
socket.on("close", () => process.exit(1));
`;

export async function listenToPrograms(t: TestContext): Promise<Reports> {
  const folder = testFolder(t);
  const path = join(folder, "report.mjs");
  writeFileSync(path, script);
  const heard: Reporter[] = [];
  const waiting: { role: string; resolve(reporter: Reporter): void }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    void meet(socket).then((reporter) => {
      const index = waiting.findIndex(({ role }) => role === reporter.role);
      if (index === -1) heard.push(reporter);
      else waiting.splice(index, 1)[0]?.resolve(reporter);
    });
  });
  server.listen(join(folder, "reports"));
  await once(server, "listening");
  cleanup(t, () => {
    server.close();
    // Whoever is left ends itself.
    for (const socket of sockets) socket.destroy();
  });
  return {
    params: (role) => ({ script: path, socket: join(folder, "reports"), role }),
    hear: (role) =>
      new Promise((resolve) => {
        const index = heard.findIndex((each) => each.role === role);
        if (index === -1) waiting.push({ role, resolve });
        else resolve(heard.splice(index, 1)[0] as Reporter);
      }),
  };
}

async function meet(socket: Socket): Promise<Reporter> {
  const lines = createInterface({ input: socket });
  const words = new Set<string>();
  const waiting: { word: string; resolve(): void }[] = [];
  const first = Promise.withResolvers<{ role: string; pid: number }>();
  const closed = Promise.withResolvers<void>();
  socket.on("error", () => undefined);
  socket.once("close", closed.resolve);
  lines.on("line", (line) => {
    if (line.startsWith("{")) return first.resolve(JSON.parse(line) as { role: string; pid: number });
    words.add(line);
    for (const each of waiting) if (each.word === line) each.resolve();
  });
  const { role, pid } = await first.promise;
  return {
    role,
    pid,
    said: (word) =>
      new Promise((resolve) => {
        if (words.has(word)) resolve();
        else waiting.push({ word, resolve });
      }),
    // The socket closes a moment before the process is no more.
    gone: closed.promise
      .then(() => until(`process ${pid} is gone`, async () => (isGone(pid) ? true : undefined)))
      .then(() => undefined),
  };
}

/** Nobody has the pid, or what has it is only waiting to be taken note of. */
export function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    return true;
  }
}
