// What a process says of its work while it goes on: what failed, and what was lost. A log never stops or slows the work: a logger
// that throws is told of once, and on stderr a flood of failures becomes a number.
import { systemClock, type Clock } from "../core/clock.ts";
import { invalid, warnOf } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { jobSuperseded, runNotesDropped, sessionRecovered, type JobEnded } from "../jobs/kind.ts";
import { sessionLost } from "../telemetry/attach.ts";
import { runsDropped } from "../telemetry/run-writer.ts";

const levels = ["info", "warn", "error"] as const;
export type LogLevel = (typeof levels)[number];

/** What a line is about, by name, and the facts of it. */
export type LogFields = { readonly event: string; readonly [field: string]: unknown };
export type LogLine = LogFields & { readonly level: LogLevel; readonly message: string };

/** As pino and its like. */
export type Logger = { readonly [Level in LogLevel]: (fields: LogFields, message: string) => void };

/** Where a process says what failed; false: nowhere. */
export type LogTo = Logger | ((line: LogLine) => unknown) | false;

type Say = (level: LogLevel, fields: LogFields, message: string) => void;

export type Log = {
  /** A job has failed. */
  failed(job: JobEnded): void;
  /** Retention has removed something, or could not. */
  retention: Say;
  /** The process works until it is told to stop, so somebody should hear of it: by `to`, by what the book was opened with, or on stderr. */
  working(to: LogTo | undefined, about: { readonly location: string; readonly session: string | null }): void;
  close(): void;
};

export function openLog(given: LogTo | undefined): Log {
  let say = given === undefined ? undefined : sayTo(given);
  let forget = say === undefined ? [] : hearFacts((...line) => say?.(...line));
  let closing: (() => void) | undefined;
  let sayRest: (() => void) | undefined;
  return {
    failed(job) {
      say?.(...lineOf(job));
    },
    retention: (...line) => say?.(...line),
    working(to = given, { location, session }) {
      sayRest?.();
      const stderr = to === undefined ? sayOnStderr(process.stderr) : undefined;
      [say, sayRest] = [to === undefined ? stderr?.say : sayTo(to), stderr?.rest];
      if (forget.length === 0) forget = hearFacts((...line) => say?.(...line));
      say?.("info", { event: "work.began", location, session }, `works on ${location} as session ${session}`);
      closing = () => say?.("info", { event: "work.ended", location, session }, `works on ${location} no more`);
    },
    close() {
      for (const each of forget) each();
      closing?.();
      sayRest?.();
    },
  };
}

export function checkLog(to: unknown): void {
  if (to === false || to === undefined || typeof to === "function") return;
  if (isLogger(to)) return;
  throw invalid(
    `log is ${quote(to)}: give a logger with info, warn and error (pino, console), a function that takes a line, or false`,
  );
}

function isLogger(to: unknown): boolean {
  if (typeof to !== "object" || to === null) return false;
  return levels.every((level) => typeof (to as Partial<Record<LogLevel, unknown>>)[level] === "function");
}

function sayTo(to: LogTo): Say | undefined {
  if (to === false) return undefined;
  const logger = typeof to === "function" ? undefined : to;
  let warned = false;
  const warn = (error: unknown): void => {
    if (!warned) warnOf("DAYBOOK_LOG", "the given log failed (further failures are not shown)", error);
    warned = true;
  };
  return (level, fields, message) => {
    try {
      const said: unknown =
        logger === undefined
          ? (to as (line: LogLine) => unknown)({ level, message, ...fields })
          : logger[level](fields, message);
      if (said instanceof Promise) said.catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}

/** What goes wrong in this process beside its jobs, of all its books. */
function hearFacts(say: Say): (() => void)[] {
  return [
    jobSuperseded.subscribe(({ id, name, runId, status }) =>
      say(
        "warn",
        { event: "job.superseded", job: id, name, run: runId, status },
        `job ${quote(name)} (${id}) ended here as ${status} after it had been given to another: that end is not kept`,
      ),
    ),
    sessionLost.subscribe(({ id, replacement }) =>
      say(
        "error",
        { event: "session.lost", session: id, replacement },
        `others gave this process up, and what it ran with it: session ${id} goes on as ${replacement}`,
      ),
    ),
    sessionRecovered.subscribe(({ jobs, retried }) =>
      say(
        "warn",
        { event: "session.recovered", jobs, retried },
        `another process is gone: ${jobs} of its runs were ended, ${retried} jobs run again`,
      ),
    ),
    runNotesDropped.subscribe(({ count }) =>
      say("warn", { event: "run.notes_dropped", count }, `${count} lines of runs could not be written`),
    ),
    runsDropped.subscribe((dropped) =>
      say("warn", { event: "runs.dropped", ...dropped }, "runs of live listeners could not be written"),
    ),
  ];
}

function lineOf({ id, name, tenant, attempt, run, retriedBy }: JobEnded): Parameters<Say> {
  const error = run?.error ?? null;
  const why = error === null ? (run?.status ?? "failed") : `${error.type}: ${error.message}`;
  const next = retriedBy === null ? "for good" : "and is tried again";
  const fields = { event: "job.failed", job: id, name, tenant, attempt, run: run?.id ?? null, error, retriedBy };
  return [
    retriedBy === null ? "error" : "warn",
    fields,
    `job ${quote(name)} (${id}) failed at try ${attempt}, ${next}: ${why}`,
  ];
}

const linesPerSecond = 20;
const lineCharsMax = 500;

type OnStderr = {
  readonly say: Say;
  /** How many lines were not shown since the last one. */
  rest(): void;
};

/** One plain line each, and no more than a few in a second. */
export function sayOnStderr(stderr: { write(text: string): unknown }, clock: Clock = systemClock): OnStderr {
  let second = 0;
  let said = 0;
  let unsaid = 0;
  const rest = (): void => {
    if (unsaid > 0) stderr.write(`daybook: ${unsaid} more lines like these were not shown\n`);
    unsaid = 0;
  };
  const say: Say = (level, _fields, message) => {
    if (level === "info") return;
    const now = Math.floor(clock.monotonic() / 1000);
    if (now !== second) said = 0;
    second = now;
    if (++said > linesPerSecond) return void unsaid++;
    rest();
    // Whoever made the message may have put anything into it: a terminal obeys none of it.
    const plain = message.slice(0, lineCharsMax).replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ");
    stderr.write(`daybook: ${plain}\n`);
  };
  return { say, rest };
}
