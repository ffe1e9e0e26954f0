// npm start: a demo book with a day of history, served. What follows `npm start --` goes to `daybook serve`; `--empty` serves a book
// with nothing in it.
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { makeHistory } from "./history.ts";
import { startServers } from "./servers.ts";
import { world } from "./world.ts";

const given = process.argv.slice(2).filter((word) => word !== "--");
const isEmpty = given.includes("--empty");
const rest = given.filter((word) => word !== "--empty");
const url = valueOf("--book") ?? join(".daybook", isEmpty ? "empty.db" : "demo.db");
const port = Number(valueOf("--port") ?? 4600);
/** Only a file is given a history; any other book is served as it is. */
const isFile = !/^postgres(?:ql)?:|^:memory:$/i.test(url);
/** Stands beside the book while its history is made, also when the power fails then. */
const unfinished = `${url}.unfinished`;

if (Number.isInteger(port) && port < 65_536 && (await isTaken(port))) {
  console.error(
    `The port ${port} is taken, perhaps by another npm start. Take another one: npm start -- --port ${port + 100}`,
  );
  process.exitCode = 1;
} else {
  if (isFile) mkdirSync(dirname(url), { recursive: true });
  await (isEmpty ? serve() : serveDemo());
}

async function serveDemo(): Promise<void> {
  if (existsSync(unfinished)) removeBook();
  if (isFile && !existsSync(url) && !(await makeBook())) return;
  const servers = await startServers();
  world.book = url;
  try {
    await serve("--config", join(import.meta.dirname, "config.ts"));
  } finally {
    await servers.close();
  }
}

/** False when Ctrl-C ended it. A book whose history is not whole is removed, and made again the next time. */
async function makeBook(): Promise<boolean> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  console.log(`Making ${url}, with a day of history …`);
  try {
    writeFileSync(unfinished, "");
    await makeHistory(url, { signal: stop.signal });
    rmSync(unfinished);
    return true;
  } catch (error) {
    removeBook();
    if (!stop.signal.aborted) throw error;
    return false;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, interrupt);
  }
}

function removeBook(): void {
  for (const end of ["", "-wal", "-shm", "-files"]) rmSync(`${url}${end}`, { force: true, recursive: true });
  rmSync(unfinished, { force: true });
}

/** The command line itself, in this process, until Ctrl-C. */
async function serve(...words: readonly string[]): Promise<void> {
  const book = valueOf("--book") === undefined ? ["--book", url] : [];
  // Ctrl-C waits for nobody long: what runs is made again at the next start.
  const grace = valueOf("--grace") === undefined ? ["--grace", "1s"] : [];
  process.argv.splice(2, process.argv.length, "serve", ...book, ...grace, ...words, ...rest);
  await import("../../src/cli/main.ts");
}

function valueOf(option: string): string | undefined {
  const at = given.findIndex((word) => word === option || word.startsWith(`${option}=`));
  return given[at]?.startsWith(`${option}=`) === true
    ? given[at].slice(option.length + 1)
    : given[at + 1 || given.length];
}

async function isTaken(wanted: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    // Of anything else that is wrong with it, the command line tells.
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "EADDRINUSE"));
    probe.listen(wanted, valueOf("--host") ?? "127.0.0.1", () => probe.close(() => resolve(false)));
  });
}
