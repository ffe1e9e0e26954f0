// What a worker tells while it works: of its apps, whether they run, and an object or a line for each job that ended; on a
// terminal, one line that changes, with the failures above it.
import { styleText } from "node:util";
import type { AppRecord } from "../apps/read-apps.ts";
import { systemClock, type Clock } from "../core/clock.ts";
import { isoTime } from "../core/time.ts";
import type { LiveRunEnded } from "../events/live/live-run.ts";
import type { JobEnded } from "../jobs/kind.ts";
import type { LogLine } from "../open/log.ts";
import type { RunRecord } from "../telemetry/run.ts";
import { plainJson, plainLine } from "../verbs/plain.ts";
import { cutTo, colourOf } from "../verbs/render.ts";
import { count } from "../verbs/shown.ts";
import type { Problem } from "./apps-folder.ts";
import { redrawMs, type LiveLine } from "./live-line.ts";

export type WorkReport = {
  begin(about: Begun): void;
  ended(job: JobEnded, error: RunRecord["error"]): void;
  /** A live listener of this process has run. */
  heard(run: LiveRunEnded): void;
  /** What the process itself says of its work, such as what retention removed. */
  said(line: LogLine): void;
  /** Anything else, as a line and as an object. */
  tell(text: string, object: Record<string, unknown>): void;
  stopping(): void;
  end(): void;
};

export type Begun = {
  readonly location: string;
  readonly session: string | null;
  readonly names: readonly string[];
  readonly running: () => number;
};

/** How it is told: JSON or text, line by line, or a line that lives on a terminal. */
export type Form = "json" | "lines" | LiveLine;

export function createWorkReport(
  out: { write(text: string): unknown },
  form: Form,
  clock: Clock = systemClock,
): WorkReport {
  const live = typeof form === "string" ? undefined : form;
  const total = { done: 0, failed: 0, retried: 0, heard: 0, heardFailed: 0 };
  const rate = createRate(clock);
  const say = (text: string, object: Record<string, unknown>): void => {
    if (live !== undefined) live.above(text);
    else out.write(form === "json" ? `${plainJson(object)}\n` : `${text}\n`);
  };

  return {
    begin({ location, session, names, running }) {
      const shown = names.map((name) => oneLine(name, 200)).join(", ");
      say(`works on ${location} as session ${session}: ${shown}`, { type: "working", location, session, names });
      live?.start(() => {
        const failed = `${total.failed} failed`;
        const red = total.failed === 0 ? failed : styleText("red", failed, { stream: process.stdout });
        const heard = total.heard === 0 ? "" : ` · ${heardLine(total)}`;
        return `${running()} running · ${total.done} done · ${red} · ${rate(total.done + total.failed)} per second${heard}`;
      });
    },
    ended(job, error) {
      if (job.status === "completed") total.done++;
      if (job.status === "failed") total.failed++;
      if (job.status === "failed" && job.retriedBy !== null) total.retried++;
      if (live !== undefined && job.status !== "failed") return;
      const at = isoTime(clock.now());
      say(endedLine(at, job, error), { type: "job", at, ...job, error });
    },
    heard(run) {
      const failed = run.status === "error" || run.status === "timed_out";
      total.heard++;
      if (failed) total.heardFailed++;
      // What succeeds is counted there, and so is what a stop ended.
      if (live !== undefined && !failed && run.status !== "skipped") return;
      const at = isoTime(clock.now());
      say(heardRunLine(at, run), { type: "listener", at, ...run });
    },
    said({ level, event, message, ...fields }) {
      const at = isoTime(clock.now());
      const text = oneLine(message, 500);
      say(level === "info" ? `${at} ${text}` : `! ${text}`, {
        type: event,
        at,
        level,
        message,
        ...plainFields(fields),
      });
    },
    tell: say,
    stopping() {
      live?.above("stopping: waiting for what runs; press Ctrl-C again to end at once");
    },
    end() {
      live?.stop();
      const again = total.retried === 0 ? "" : `, ${total.retried} of them to be tried again`;
      const heard = total.heard === 0 ? "" : `; ${heardLine(total)}`;
      say(`stopped: ${total.done} done, ${total.failed} failed${again}${heard}`, { type: "stopped", ...total });
    },
  };
}

/** An error as JSON would be empty, and its message says it. */
function plainFields({ error, ...rest }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return error === undefined || error instanceof Error ? rest : { ...rest, error };
}

function endedLine(at: string, job: JobEnded, error: RunRecord["error"]): string {
  const tenant = job.tenant === "default" ? "" : ` of ${job.tenant}`;
  const took = job.run === null ? "" : ` in ${Math.round(job.run.durationMs)} ms`;
  const why = error === null ? "" : `: ${errorLine(error, 200)}`;
  const again = job.retriedBy === null ? "" : `; ${job.retriedBy} tries again`;
  return `${at} ${painted(job.status)} ${oneLine(job.name, 200)} ${job.id}${tenant}${took}${why}${again}`;
}

function heardLine({ heard, heardFailed }: { readonly heard: number; readonly heardFailed: number }): string {
  return `${count(heard, "live run")}${heardFailed === 0 ? "" : `, ${heardFailed} of them failed`}`;
}

function heardRunLine(at: string, { tenant, name, runId, topic, status, durationMs, error }: LiveRunEnded): string {
  const of = tenant === "default" ? "" : ` of ${tenant}`;
  const why = error === null ? "" : `: ${errorLine(error, 200)}`;
  return `${at} ${painted(status)} ${oneLine(name, 200)} ${runId}${of} heard ${topic} in ${Math.round(durationMs)} ms${why}`;
}

function painted(status: string): string {
  const colour = colourOf(status);
  return colour === undefined ? status : styleText(colour, status, { stream: process.stdout });
}

/** How far back the rate looks, in drawings of the line. */
const samplesMax = 5000 / redrawMs;

function createRate(clock: Clock): (count: number) => string {
  const samples: { at: number; count: number }[] = [];
  return (count) => {
    const newest = { at: clock.monotonic(), count };
    samples.push(newest);
    if (samples.length > samplesMax) samples.shift();
    const first = samples[0] ?? newest;
    if (newest.count === first.count) return "0";
    const perSecond = ((newest.count - first.count) * 1000) / (newest.at - first.at);
    return perSecond.toFixed(perSecond < 10 ? 1 : 0);
  };
}

export type Tell = (text: string, object: Record<string, unknown>) => void;

export function tellProblem(tell: Tell, { file, message }: Problem): void {
  tell(`! ${oneLine(message, 500)}`, { type: "problem", file, message });
}

export function tellApp(tell: Tell, { key, instances, registrations }: AppRecord): void {
  const running = instances.filter(({ status }) => status === "running").length;
  const { listeners, schedules, jobs } = registrations;
  if (running > 0) {
    const what = [count(listeners, "listener"), count(schedules, "schedule"), count(jobs, "job")].join(", ");
    tell(`app ${key} runs: ${running} of ${count(instances.length, "instance")}, ${what}`, {
      type: "app",
      key,
      status: "running",
      running,
      instances: instances.length,
      registrations,
    });
  }
  for (const { index, status, error } of instances) {
    if (status !== "failed" || error === null) continue;
    const at = error.at === null ? "" : ` at ${error.at}`;
    tell(`! app ${key}, instance ${index}, failed${at}: ${errorLine(error, 500)}`, {
      type: "app",
      key,
      status: "failed",
      instance: index,
      error,
    });
  }
}

export function oneLine(text: string, widthMax: number): string {
  return cutTo(plainLine(text), widthMax);
}

export function errorLine(
  { type, message }: { readonly type: string; readonly message: string },
  widthMax: number,
): string {
  return oneLine(`${type}: ${message}`, widthMax);
}
