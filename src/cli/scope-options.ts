// The options of every question about a stretch of time: when, and of what.
import type { Command } from "commander";
import type { ScopeOptions } from "../telemetry/report/scope.ts";
import { wholeNumber } from "./whole-number.ts";

export function addTimeOptions(command: Command): Command {
  return command
    .option("--since <time>", "from then on: an ISO time, or how long ago, such as 24h")
    .option("--until <time>", "until then: an ISO time, or how long ago");
}

export function addScopeOptions(command: Command): Command {
  return addTimeOptions(command)
    .option("--kind <kind>", "only of this kind: job, listener (live), delivery, schedule, direct or call")
    .option("--name <name>", "only of the job, listener or schedule of this name")
    .option("--app <key>", "only of this app")
    .option("--instance <n>", "only of this instance of it", wholeNumber("--instance"));
}

/** Of what was given on the command line, what such a question takes. */
export function scopeOf({ since, until, kind, name, app, instance, session }: ScopeOptions): ScopeOptions {
  return Object.fromEntries(
    Object.entries({ since, until, kind, name, app, instance, session }).filter(([, value]) => value !== undefined),
  );
}
