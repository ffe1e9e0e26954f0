// The one way in which a command gets at a book: it is opened as the global options say, given to the command, and
// closed again, also when the command fails and when a signal ends it. Then its answer is printed.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import type { OpenOptions } from "../open/open.ts";
import { plainJson } from "../verbs/plain.ts";
import { listenForSignals, type Stop } from "./stop.ts";
import { bookOf } from "./target.ts";

export type Access = Required<Pick<OpenOptions, "attach" | "migrate">> &
  Pick<OpenOptions, "readOnly" | "use" | "worker" | "files" | "calls" | "zone" | "retention" | "log">;

/** For commands that only look: the book must exist and be up to date, and nothing is written into it. */
export const looking: Access = { attach: false, migrate: false, readOnly: true };

/** For commands that write a row or two and are gone: they become no session, and names of jobs are taken on trust. */
export const changing: Access = { attach: false, migrate: false, worker: false };

/** `signal` aborts when the user or the system asks the command to end; the book is closed right after. */
export type Run = (book: Book, signal: AbortSignal) => Promise<Answer | undefined>;

export async function withBook(command: Command, access: Access, run: Run): Promise<void> {
  const stop = listenForSignals();
  try {
    const book = await openUnlessStopped(stop, command, access);
    if (book === undefined) return;
    let working: Promise<Answer | undefined> | undefined;
    try {
      working = run(book, stop.signal);
      const answer = await Promise.race([working, stop.asked]);
      if (answer !== undefined) await printAnswer(command, answer);
    } finally {
      await closeBook(book, access, stop.signal);
      if (stop.signal.aborted) await stop.leave(working);
    }
  } finally {
    stop.release();
  }
}

/** Opens the book; undefined when a signal came first, and then the process ends. */
export async function openUnlessStopped(stop: Stop, command: Command, access: Access): Promise<Book | undefined> {
  const opening = openBook(command, access);
  const book = await Promise.race([opening, stop.asked]);
  // A server that does not answer keeps nobody waiting; a book that is open in a moment is closed as ever.
  if (book === undefined) {
    const closed = opening.then((late) => late.close()).catch(() => undefined);
    await stop.leave(Promise.race([closed, systemClock.sleep(openMsLeft)]));
  }
  return book;
}

/** How long a book that was about to open has for it once a signal came. */
const openMsLeft = 200;

export async function openBook(command: Command, access: Access): Promise<Book> {
  const { tenant, schema } = command.optsWithGlobals<{ tenant: string; schema?: string }>();
  const book = bookOf(command);
  if (book === ":memory:" && !access.migrate) {
    throw invalid('":memory:" is a book that ends with its program, so none is there yet: name a file or postgres://…');
  }
  // Imported here and not above: nothing of the engine is needed to print help.
  const { open } = await import("../open/open.ts");
  return open(book, { ...access, tenant, ...(schema === undefined ? {} : { schema }) });
}

/** Who only looked has nothing to put away; a session is to be ended, also when the file is busy. */
const closeMsMax = { looking: 500, attached: limits.busyMsMax };

// A command that was asked to end does not wait for ever for a server or a file that does not answer.
async function closeBook(book: Book, { attach }: Access, signal: AbortSignal): Promise<void> {
  if (!signal.aborted) return book.close();
  const patience = systemClock.sleep(attach ? closeMsMax.attached : closeMsMax.looking);
  await Promise.race([book.close().catch(() => undefined), patience]);
}

export type Answer = {
  /** What `--json` prints: plain values, times as ISO 8601 text. */
  readonly json: unknown;
  /** What people read. It is made only when it is wanted, since tables cost a module. */
  text(): string | Promise<string>;
  /** What is said to a person besides. It goes to standard error, so that a pipe carries the answer alone. */
  readonly besides?: string;
  /** Other than 0 when the command did its work and the answer is bad news; docs/cli.md lists them. */
  readonly exit?: number;
};

export async function printAnswer(command: Command, answer: Answer): Promise<void> {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  const text = json === true ? plainJson(answer.json, 2) : await answer.text();
  process.stdout.write(`${text}\n`);
  if (json !== true && answer.besides !== undefined) process.stderr.write(`${answer.besides}\n`);
  if (answer.exit !== undefined) process.exitCode = answer.exit;
}
