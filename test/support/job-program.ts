// A program that produces and runs jobs and does what its parent says. It is started by job-process.ts, which also ends
// it; tests kill it in between.
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { systemClock, type Clock } from "../../src/core/clock.ts";
import { open, type Book, type WorkerOptions } from "../../src/index.ts";
import { commandOrphaned } from "../../src/jobs/command/command-record.ts";
import { jobsClaimed, jobSuperseded } from "../../src/jobs/kind.ts";
import { sessionLost } from "../../src/telemetry/attach.ts";
import { jobKinds } from "./job-kinds.ts";
import { openLedger } from "./job-ledger.ts";

export type Start = {
  readonly url: string;
  /** The folder of its ledger. */
  readonly folder: string;
  /** Starts a worker at once. */
  readonly work?: WorkerOptions;
  /** `book.work()` instead of a worker: it works until a signal. */
  readonly untilSignal?: boolean;
  /** A clock of its own that can be set forward, as the sleep of a stopped process would. */
  readonly ownClock?: boolean;
  /** Counts the statements about jobs. */
  readonly counting?: boolean;
  /** Ends the process when it has claimed something and not started it. */
  readonly dieOnClaim?: boolean;
};

export type Command =
  /** Lets the handlers that wait at the gate go on. */
  | { readonly do: "go" }
  | { readonly do: "forward"; readonly ms: number }
  /** Enqueues, one at a time and `callers` at once, until told to rest; `mixed` with groups, steps and direct work. */
  | { readonly do: "produce"; readonly callers: number; readonly keys: number; readonly mixed?: boolean }
  | { readonly do: "rest" }
  /** Runs a job of this name directly, and says what came of it. */
  | { readonly do: "runNow"; readonly name: string; readonly params?: object; readonly queue: string }
  /** Asks for the queue so many times at once. */
  | { readonly do: "reserve"; readonly queue: string; readonly times: number }
  | { readonly do: "count" }
  | { readonly do: "close" };

export type Said =
  | { readonly said: "open"; readonly sessionId: string }
  | { readonly said: "working" }
  | { readonly said: "began"; readonly name: string; readonly jobId: string }
  | { readonly said: "aborted"; readonly jobId: string; readonly cause: unknown }
  | { readonly said: "superseded"; readonly id: string; readonly status: string }
  | { readonly said: "orphaned"; readonly runId: string; readonly fate: string }
  | { readonly said: "lost"; readonly id: string; readonly replacement: string }
  | { readonly said: "rested"; readonly refused: readonly string[] }
  | { readonly said: "ran"; readonly refused?: string }
  | { readonly said: "reserved"; readonly granted: number; readonly refused: readonly string[] }
  | { readonly said: "counted"; readonly statements: readonly string[] }
  | { readonly said: "closed" };

const start = JSON.parse(process.argv[2] ?? "{}") as Start;
const say = (message: Said): void => void process.send?.(message);
const ledger = openLedger(start.folder);
const gate = Promise.withResolvers<void>();
const opened = Promise.withResolvers<Book>();
let forwardMs = 0;
let resting = false;
let producing: Promise<unknown> = Promise.resolve();
const refused: string[] = [];
const statements: string[] = [];

const kinds = jobKinds({
  ledger,
  began: (of) => say({ said: "began", ...of }),
  aborted: (of) => say({ said: "aborted", ...of }),
  gate: () => gate.promise,
});
const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + forwardMs };

// When the parent is gone nobody waits for this program any more, whatever it is doing.
process.once("disconnect", () => process.exit(0));
process.on("message", (command: Command) => void opened.promise.then((to) => obey(to, command)));
jobSuperseded.subscribe(({ id, status }) => say({ said: "superseded", id, status }));
commandOrphaned.subscribe(({ runId, fate }) => say({ said: "orphaned", runId, fate }));
sessionLost.subscribe((lost) => say({ said: "lost", ...lost }));
if (start.dieOnClaim === true) jobsClaimed.subscribe(() => process.kill(process.pid, "SIGKILL"));

const book = await open(start.url, {
  use: Object.values(kinds),
  files: join(start.folder, "files"),
  ...(start.ownClock === true ? { clock } : {}),
  ...(start.counting === true ? { fault: count } : {}),
});
opened.resolve(book);
flushCompileCache(); // it may never come to its end
say({ said: "open", sessionId: book.sessionId ?? "" });
if (start.untilSignal === true) {
  process.once("SIGTERM", () => gate.resolve());
  const done = book.work(start.work);
  say({ said: "working" });
  await done;
  say({ said: "closed" });
  process.disconnect?.();
} else if (start.work !== undefined) {
  await book.startWorker(start.work);
  say({ said: "working" });
}

async function obey(to: Book, command: Command): Promise<void> {
  switch (command.do) {
    case "go":
      return gate.resolve();
    case "forward":
      forwardMs += command.ms;
      return;
    case "produce":
      producing = Promise.all(Array.from({ length: command.callers }, (_, caller) => produce(to, caller, command)));
      return;
    case "rest":
      resting = true;
      await producing;
      return say({ said: "rested", refused });
    case "runNow":
      return runDirectly(to, command);
    case "reserve":
      return reserve(to, command);
    case "count":
      return say({ said: "counted", statements: statements.splice(0) });
    case "close":
      await to.close();
      return say({ said: "closed" });
  }
}

async function runDirectly(to: Book, { name, params = {}, queue }: { name: string; params?: object; queue: string }) {
  const failure = await to.jobs.runNow(name, params, { queue }).then(() => undefined, String);
  say({ said: "ran", ...(failure === undefined ? {} : { refused: failure }) });
}

async function reserve(to: Book, { queue, times }: { queue: string; times: number }): Promise<void> {
  const asked = await Promise.allSettled(Array.from({ length: times }, () => to.reservations.reserve(queue)));
  const reasons = asked.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []));
  say({ said: "reserved", granted: times - reasons.length, refused: reasons });
}

function count(moment: "before" | "after", text: string): void {
  if (moment === "before" && /\b(?:daybook_)?job\b/.test(text))
    statements.push(text.trim().replace(/\s+/g, " ").slice(0, 60));
}

async function produce(
  to: Book,
  caller: number,
  { keys, mixed = false }: { readonly keys: number; readonly mixed?: boolean },
): Promise<void> {
  for (let count = 0; !resting; count++) {
    const one = async (): Promise<string> =>
      count % 4 === 0
        ? (await to.jobs.enqueue(kinds.keyed, { ms: 8, key: `key-${(count / 4) % keys}` })).id
        : (await to.jobs.enqueue(kinds.plain, { ms: (count * 7 + caller) % 31 })).id;
    try {
      const made = (mixed ? await produceMore(to, count) : undefined) ?? [await one()];
      for (const jobId of made) ledger.note("ack", { jobId });
    } catch (error) {
      refused.push(String(error));
    }
    // A backlog that only grows would hide who is slow.
    await systemClock.sleep(4);
  }
}

/** Now and then a group, a job of steps, or direct work, in a queue in which others stand as well. */
async function produceMore(to: Book, count: number): Promise<readonly string[] | undefined> {
  switch (count % 16) {
    case 3:
    case 11: {
      const mode = count % 32 < 16 ? "sequential" : "parallel";
      const { jobs } = await to.groups.create({ mode }, (group) => {
        for (let slot = 0; slot < 3; slot++) group.add(kinds.plain, { ms: slot });
      });
      return jobs.map(({ id }) => id);
    }
    case 6:
      return [(await to.jobs.enqueue(kinds.staged, { ms: 3 })).id];
    case 9: {
      const { id } = await to.jobs.enqueue(kinds.plain, { ms: 1 }, { queue: "direct" });
      await to.jobs.runNow(kinds.neighbour, { ms: 2 }, { queue: "direct" });
      return [id];
    }
    default:
      return undefined;
  }
}
