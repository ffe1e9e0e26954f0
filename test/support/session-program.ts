// A program that has a book open and does what its parent says: the other process in the tests of sessions. It is
// started by session-process.ts, which also ends it.
import { systemClock } from "../../src/core/clock.ts";
import { open, type Book } from "../../src/index.ts";
import { sessionLost } from "../../src/telemetry/attach.ts";

export type Start = { readonly url: string; readonly metadata?: Record<string, unknown> };

export type Command =
  | { readonly do: "say" }
  /** Holds the event loop. */
  | { readonly do: "block"; readonly ms: number }
  /** Writes as fast as it can; `callers` units are in flight at a time. */
  | { readonly do: "write"; readonly ms: number; readonly callers: number }
  | { readonly do: "fail"; readonly how: Failure }
  | { readonly do: "handle"; readonly by: "listener" | "capture" }
  | { readonly do: "close" }
  /** Ends the script without closing the book. */
  | { readonly do: "leave" };

export type Failure =
  | "throw"
  | "throw text"
  | "throw null"
  | "reject"
  | "reject text"
  | "throw in an open unit"
  | "throw beside a busy writer";

export type Said =
  | { readonly said: "open"; readonly sessionId: string }
  | { readonly said: "id"; readonly sessionId: string }
  | { readonly said: "unblocked" }
  | { readonly said: "written"; readonly report: WriteReport }
  | { readonly said: "handled"; readonly message: string }
  | { readonly said: "handling" }
  | { readonly said: "closed" }
  | { readonly said: "lost"; readonly id: string; readonly replacement: string };

export type WriteReport = { readonly units: number; readonly slowestMs: number; readonly errors: readonly string[] };

const { url, metadata } = JSON.parse(process.argv[2] ?? "{}") as Start;
const say = (message: Said): void => void process.send?.(message);

const book = await open(url, metadata === undefined ? {} : { metadata });
sessionLost.subscribe((lost) => say({ said: "lost", ...lost }));
process.on("message", (command: Command) => void obey(book, command));
// When the parent is gone nobody waits for this program any more, whatever it is doing.
process.once("disconnect", () => process.argv.includes("leaving") || process.exit(0));
say({ said: "open", sessionId: book.sessionId ?? "" });

async function obey(given: Book, command: Command): Promise<void> {
  switch (command.do) {
    case "say":
      return say({ said: "id", sessionId: given.sessionId ?? "" });
    case "block":
      block(command.ms);
      return say({ said: "unblocked" });
    case "write":
      return say({ said: "written", report: await writeFor(given, command) });
    case "fail":
      return fail(given, command.how);
    case "handle":
      if (command.by === "listener") process.on("uncaughtException", handled);
      else process.setUncaughtExceptionCaptureCallback(handled);
      return say({ said: "handling" });
    case "close":
      await given.close();
      return say({ said: "closed" });
    case "leave":
      process.argv.push("leaving");
      process.removeAllListeners("message");
      return process.disconnect?.();
  }
}

// Without a processor of its own: others have work to do meanwhile.
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function writeFor(given: Book, how: { ms: number; callers: number }): Promise<WriteReport> {
  const until = systemClock.monotonic() + how.ms;
  const errors: string[] = [];
  let units = 0;
  let slowestMs = 0;
  const call = async (): Promise<void> => {
    for (let at = systemClock.monotonic(); at < until; at = systemClock.monotonic()) {
      try {
        await given.write((tx) => tx.sql`insert into written (pid) values (${process.pid})`);
        units++;
      } catch (error) {
        errors.push(String(error));
      }
      slowestMs = Math.max(slowestMs, systemClock.monotonic() - at);
    }
  };
  await Promise.all(Array.from({ length: how.callers }, call));
  return { units, slowestMs, errors };
}

function fail(given: Book, how: Failure): void {
  switch (how) {
    case "throw":
      return later(new TypeError("the boiler is cold", { cause: new Error("no gas") }));
    case "throw text":
      return later("plain words");
    case "throw null":
      return later(null);
    case "reject":
      return void Promise.reject(new RangeError("nobody awaited this"));
    case "reject text":
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- programs do this
      return void Promise.reject("words that nobody awaited");
    case "throw in an open unit":
      return void given.write(async (tx) => {
        await tx.sql`insert into written (pid) values (${-1})`;
        later(new Error("thrown beside an open transaction"));
        await new Promise(() => undefined);
      });
    case "throw beside a busy writer":
      void writeFor(given, { ms: 60_000, callers: 20 });
      return void systemClock.after(300, () => later(new Error("thrown beside a busy writer")));
  }
}

// From a callback of its own, where nobody can catch it.
function later(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
  });
}

function handled(error: unknown): void {
  say({ said: "handled", message: String(error) });
}
