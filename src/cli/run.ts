// daybook run: a worker from a user's file. It works until it is told to stop, ends what it began, and closes the book.
import type { Command } from "commander";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import { checkCount } from "../core/count.ts";
import { durationMs } from "../core/duration.ts";
import { checkName } from "../core/name.ts";
import type { JobEnded } from "../jobs/kind.ts";
import { graceMsOf } from "../jobs/worker/worker-options.ts";
import { closeInTime } from "../book/work.ts";
import type { Loaded } from "./load-definitions.ts";
import { liveLineOn } from "./live-line.ts";
import { listenForSignals, type Stop } from "./stop.ts";
import { wholeNumber } from "./whole-number.ts";
import { openUnlessStopped, type Access } from "./with-book.ts";
import { createWorkReport, type Form, type WorkReport } from "./work-report.ts";

const example = `
The file exports its definitions, one by one or as a list; TypeScript runs as it is. What the config
of the project declares (docs/jobs.md) is run as well, and without a file that alone. A book that is
not there is made, and one that is not up to date is migrated. Jobs of all tenants are run.

Of a folder every file is loaded, and one that cannot be is said and left out (docs/apps.md). With
--watch an app whose file is edited is stopped and set up again, for use while you write it.

On a terminal one line shows what happens and failures stay above it. Elsewhere each job that ended
is a line, with --json an object per line. SIGINT or SIGTERM lets what runs end (within --grace), then
aborts its signals, and ends the program with 0. With 23 it ends when a handler ignored its signal; its
job runs again elsewhere. A second signal ends it at once.

Example:
  $ daybook run --book shop.db jobs.ts --concurrency 20 --queues mail,default
  $ daybook run --book home.db ./apps --watch`;

type Options = {
  readonly concurrency?: number;
  readonly queues?: readonly string[];
  readonly grace?: number;
  readonly config?: string;
  readonly watch?: boolean;
};

export function run(program: Command): void {
  program
    .command("run")
    .description("run the jobs and apps that files define, until it is told to stop")
    .argument("[module]", "the file that exports the definitions, or a folder of apps: TypeScript or JavaScript")
    .option("--config <file>", "the config of the project (default: daybook.config.ts, if it is here)")
    .option("--concurrency <n>", "how many runs at the same time (default: 10)", toConcurrency)
    .option("--grace <duration>", "how long what runs may go on after a signal: 5s, 1m (default: 8s)", toGrace)
    .option("--queues <list>", "only these queues, separated by commas (default: all)", toQueues)
    .option("--watch", "of a folder: stop and set up again the apps whose files are edited")
    .addHelpText("after", example)
    .action(async (module: string | undefined, options: Options, command: Command) => {
      const stop = listenForSignals();
      try {
        await work(module, options, command, stop);
      } finally {
        stop.release();
      }
    });
}

// Checked before a book is opened, which may make one.
function toConcurrency(text: string): number {
  return checkCount(wholeNumber("--concurrency")(text), "--concurrency", 1, 10_000);
}

function toGrace(text: string): number {
  return durationMs(text, "--grace");
}

function toQueues(text: string): string[] {
  return text.split(",").map((each) => checkName(each.trim(), "queue"));
}

async function work(
  module: string | undefined,
  { config, watch = false, ...worker }: Options,
  command: Command,
  stop: Stop,
): Promise<void> {
  const { loadDefinitions } = await import("./load-definitions.ts");
  // A module that never finishes loading must not keep the program from ending.
  const loaded = await Promise.race([loadDefinitions({ module, config }, { watch }), stop.asked]);
  if (loaded === undefined) return stop.leave(undefined);
  const { use, calls } = loaded;
  const access: Access = { attach: true, migrate: true, use, worker, ...(calls === undefined ? {} : { calls }) };
  const { setupFailed } = await import("../apps/handler.ts");
  // Which apps run and which do not is told below, in the form that was asked for.
  setupFailed.subscribe(() => undefined);
  const book = await openUnlessStopped(stop, command, access);
  if (book === undefined) return;
  const report = createWorkReport(process.stdout, formOf(command));
  const listening = await listen(book, report);
  try {
    const working = await book.startWorker();
    const names = use.flatMap((each) => (each.kind === "event" ? [] : each.kind === "app" ? each.key : each.name));
    report.begin({ location: book.location, session: book.sessionId, names, running: () => working.running });
    await tellHeld(book, report);
    listening.begin();
    const unwatch = await tellApps(book, loaded, report, watch);
    await stop.asked;
    report.stopping();
    await closeInTime({
      graceMs: graceMsOf(worker),
      running: () => working.running,
      close: async () => {
        await unwatch();
        await working.stop();
        await listening.end();
        await book.close();
        report.end();
      },
    });
  } finally {
    await book.close();
  }
  // What the user's file left open (a timer, a connection) does not keep a worker that was told to stop.
  systemClock.after(500, () => process.exit());
}

/** A copy that does nothing of what it has should say why. */
async function tellHeld(book: Book, report: WorkReport): Promise<void> {
  const { jobs, schedules } = await book.held();
  const [held, silent] = [jobs, schedules].map((all) => all.reduce((sum, { count }) => sum + count, 0));
  if (held === 0 && silent === 0) return;
  const what = `${held} jobs and ${silent} schedules are held`;
  report.tell(`! this book is a copy: ${what} (daybook held, daybook release)`, { type: "held", jobs, schedules });
}

/** Says what became of the apps; with `watch` also from now on, until the function that it returns is called. */
async function tellApps(book: Book, loaded: Loaded, report: WorkReport, watch: boolean): Promise<() => Promise<void>> {
  const apps = new Set(loaded.use.flatMap((each) => (each.kind === "app" ? each.key : [])));
  if (apps.size === 0 && loaded.folder === undefined) return async () => undefined;
  const { tellApp, tellProblem } = await import("./app-report.ts");
  for (const each of loaded.problems) tellProblem(report.tell, each);
  for (const each of await book.apps.list()) if (apps.has(each.key)) tellApp(report.tell, each);
  return watch ? (await import("./watch-apps.ts")).watchApps(book, loaded, report.tell) : async () => undefined;
}

function formOf(command: Command): Form {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  if (json === true) return "json";
  return process.stdout.isTTY ? liveLineOn([process.stdout, process.stderr]) : "lines";
}

type Listening = { begin(): void; end(): Promise<void> };

async function listen(book: Book, report: WorkReport): Promise<Listening> {
  const { jobSettled } = await import("../jobs/kind.ts");
  const reading = new Set<Promise<void>>();
  // The first jobs may have ended before the worker has said that it works.
  let early: JobEnded[] | undefined = [];
  const tell = (job: JobEnded): void => {
    const { run, tenant } = job;
    if (job.status !== "failed" || run === null) return report.ended(job, null);
    // The fact says that it failed; why is in its run.
    const why = book.tenant(tenant).runs.get(run.id);
    const told = why.then(({ error }) => error).catch(() => null);
    const done = told.then((error) => report.ended(job, error)).finally(() => reading.delete(done));
    reading.add(done);
  };
  const forget = jobSettled.subscribe((job) => void (early === undefined ? tell(job) : early.push(job)));
  return {
    begin() {
      for (const job of early ?? []) tell(job);
      early = undefined;
    },
    async end() {
      await Promise.all(reading);
      forget();
    },
  };
}
