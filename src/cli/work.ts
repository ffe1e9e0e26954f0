// What daybook run does: it works until it is told to stop, ends what it began, and closes the book.
import type { Command } from "commander";
import { setupFailed } from "../apps/handler.ts";
import type { Book } from "../book/book.ts";
import { closeInTime } from "../book/work.ts";
import { systemClock } from "../core/clock.ts";
import { liveRunEnded } from "../events/live/live-run.ts";
import { jobSettled, type JobEnded } from "../jobs/kind.ts";
import { graceMsOf } from "../jobs/worker/start-worker.ts";
import type { LogLine } from "../open/log.ts";
import { roomsOf } from "../open/rooms.ts";
import { count } from "../verbs/shown.ts";
import { createWorkReport, tellApp, tellProblem, type Form, type WorkReport } from "./work-report.ts";
import { liveLineOn } from "./live-line.ts";
import { loadDefinitions, type Loaded } from "./load-definitions.ts";
import type { Options } from "./run.ts";
import type { Stop } from "./stop.ts";
import { bookOf } from "./target.ts";
import { watchApps } from "./watch-apps.ts";
import { openUnlessStopped, type Access } from "./with-book.ts";

export async function work(
  module: string | undefined,
  { config, watch = false, strict = false, ...rest }: Options,
  command: Command,
  stop: Stop,
): Promise<void> {
  const worker = { ...rest, strict };
  // Before a file of the user's is loaded, which may do what it likes.
  bookOf(command);
  // A module that never finishes loading must not keep the program from ending.
  const loaded = await Promise.race([loadDefinitions({ module, config }, { watch }), stop.asked]);
  if (loaded === undefined) return stop.leave(undefined);
  const { use, calls, zone, retention } = loaded;
  const said = Object.entries({ calls, zone, retention }).filter(([, value]) => value !== undefined);
  const report = createWorkReport(process.stdout, formOf(command));
  const later = waiting();
  // Jobs that failed are told with those that did not.
  const log = (line: LogLine): void => void (line.event === "job.failed" || later.tell(() => report.said(line)));
  const access: Access = { attach: true, migrate: true, use, worker, log, ...Object.fromEntries(said) };
  // Which apps run and which do not is told below, in the form that was asked for.
  setupFailed.subscribe(() => undefined);
  const book = await openUnlessStopped(stop, command, access);
  if (book === undefined) return;
  const listening = listen(book, report, later.tell);
  try {
    const working = await book.startWorker();
    const names = use.flatMap((each) => (each.kind === "event" ? [] : each.kind === "app" ? each.key : each.name));
    report.begin({ location: book.location, session: book.sessionId, names, running: () => working.running });
    await tellHeld(book, report);
    later.begin();
    const unwatch = await tellApps(book, loaded, report, watch);
    await stop.asked;
    report.stopping();
    await closeInTime({
      graceMs: graceMsOf(worker),
      running: () => working.running,
      close: async () => {
        await unwatch();
        // As the book does it: live handlers do not wait for the jobs. It closes later, because the ends of jobs are read from it.
        await Promise.all([roomsOf(book).live?.bus.quiet(), working.stop()]);
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
  const held = jobs.reduce((sum, each) => sum + each.count, 0);
  const silent = schedules.reduce((sum, each) => sum + each.count, 0);
  if (held === 0 && silent === 0) return;
  const what = `${count(held, "job")} and ${count(silent, "schedule")} are held`;
  report.tell(`! this book is a copy: ${what} (daybook held, daybook release)`, { type: "held", jobs, schedules });
}

/** Says what became of the apps; with `watch` also from now on, until the function that it returns is called. */
async function tellApps(book: Book, loaded: Loaded, report: WorkReport, watch: boolean): Promise<() => Promise<void>> {
  const apps = new Set(loaded.use.flatMap((each) => (each.kind === "app" ? each.key : [])));
  if (apps.size === 0 && loaded.folder === undefined) return async () => undefined;
  for (const each of loaded.problems) tellProblem(report.tell, each);
  for (const each of await book.apps.list()) if (apps.has(each.key)) tellApp(report.tell, each);
  return watch ? watchApps(book, loaded, report.tell) : async () => undefined;
}

function formOf(command: Command): Form {
  const { json } = command.optsWithGlobals<{ json?: boolean }>();
  if (json === true) return "json";
  return process.stdout.isTTY ? liveLineOn([process.stdout, process.stderr]) : "lines";
}

/** What happens before the worker has said that it works is told behind that. */
function waiting(): { tell(told: () => void): void; begin(): void } {
  let early: (() => void)[] | undefined = [];
  return {
    tell: (told) => void (early === undefined ? told() : early.push(told)),
    begin() {
      for (const told of early ?? []) told();
      early = undefined;
    },
  };
}

function listen(book: Book, report: WorkReport, later: (told: () => void) => void): { end(): Promise<void> } {
  const reading = new Set<Promise<void>>();
  const tell = (job: JobEnded): void => {
    const { run, tenant } = job;
    if (job.status !== "failed" || run === null) return report.ended(job, null);
    // The fact says that it failed; why is in its run.
    const why = book.tenant(tenant).runs.get(run.id);
    const told = why.then(({ error }) => error).catch(() => null);
    const done = told.then((error) => report.ended(job, error)).finally(() => reading.delete(done));
    reading.add(done);
  };
  const forget = jobSettled.subscribe((job) => later(() => tell(job)));
  // To the end of the book: what a listener had yet to act on is skipped when the book closes.
  liveRunEnded.subscribe((run) => later(() => report.heard(run)));
  return {
    async end() {
      await Promise.all(reading);
      forget();
    },
  };
}
