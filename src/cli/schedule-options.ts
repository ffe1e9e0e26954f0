// When, what and how, as a shell gives it: the options that add, edit and preview share.
import { Option, type Command } from "commander";
import type { ScheduleChanges, ScheduleOptions } from "../schedules/options.ts";
import type { PreviewTiming } from "../schedules/schedules.ts";
import { readParams } from "./read-params.ts";
import { wholeNumber } from "./whole-number.ts";

/** Every value as the shell gave it, under the library's own names. */
export type Given = { readonly [Name in string]?: string | readonly string[] };

export function addWhenOptions(command: Command, orNone = ""): Command {
  return command
    .option("--cron <expression>", 'five fields, or six with the seconds first, or "@daily" and the like')
    .option("--every <duration>", "in elapsed time, such as 90s or 6h, without drift")
    .option("--daily <time>", 'every day at a time of the zone\'s clock, such as "07:00"')
    .option("--at <time>", "once, ISO 8601 with a zone")
    .option("--in <duration>", "once, so long from now, such as 10m")
    .option("--zone <zone>", 'the zone whose clock counts, such as Europe/Madrid (default: "UTC")')
    .addOption(
      new Option("--gap <policy>", "a time that the clock leaves out (default: shift)").choices(["shift", "skip"]),
    )
    .addOption(
      new Option("--overlap <policy>", "a time that comes twice (default: first)").choices(["first", "last", "both"]),
    )
    .option("--start <time>", `no slot before this time${orNone}`)
    .option("--end <time>", `no slot at this time or later${orNone}`)
    .option("--jitter <duration>", `fire up to so much later, always by the same amount${orNone}`);
}

export function addHowOptions(command: Command, orNone = ""): Command {
  return command
    .addOption(new Option("--job <name>", "the name of the job that it makes").conflicts(["template", "event"]))
    .addOption(new Option("--template <name>", "the template that it makes jobs from").conflicts("event"))
    .option("--event <topic>", "the topic of the event that it publishes")
    .option("--payload <json>", "the payload of the event, given like --params")
    .option("--params <json>", 'the params as JSON, "@file" to read them from a file, "-" from standard input')
    .option("--queue <queue>", "the queue of its jobs")
    .option("--priority <n>", "the priority of its jobs or events, from -1000 to 1000")
    .option("--tag <tag>", "a tag of its jobs; may be given several times", collect)
    .addOption(
      new Option("--missed <policy>", "slots that nobody was there for (default: latest)").choices([
        ...["latest", "all", "skip"],
      ]),
    )
    .option("--max-lateness <duration>", `how late a missed slot may still be run${orNone}`)
    .addOption(
      new Option("--concurrency <policy>", "when the job before has not ended (default: skip)").choices([
        ...["skip", "queue", "cancel", "allow"],
      ]),
    )
    .option("--max-fires <n>", `how often it fires in all${orNone}`)
    .option("--pause-after-failures <n>", `pause after so many failed jobs in a row${orNone}`);
}

function collect(tag: string, before: readonly string[] = []): string[] {
  return [...before, tag];
}

const mayBeNone = ["start", "end", "jitter", "maxLateness", "maxFires", "pauseAfterFailures"];

// What is missing, too much or no such value is refused by the library, in its own words.
export async function toOptions(given: Given): Promise<ScheduleOptions> {
  return (await readGiven(given)) as unknown as ScheduleOptions;
}

/** The same, where "none" takes a setting back. */
export async function toChanges(given: Given): Promise<ScheduleChanges> {
  const entries = Object.entries(given);
  const isNone = ([name, value]: [string, unknown]): boolean => value === "none" && mayBeNone.includes(name);
  const set = await readGiven(Object.fromEntries(entries.filter((entry) => !isNone(entry))));
  return { ...set, ...Object.fromEntries(entries.filter(isNone).map(([name]) => [name, null])) };
}

export async function toTiming(given: Given): Promise<PreviewTiming> {
  return (await readGiven(given)) as unknown as PreviewTiming;
}

async function readGiven({ params, payload, tag, ...given }: Given): Promise<Record<string, unknown>> {
  const numbers = ["priority", "maxFires", "pauseAfterFailures"] as const;
  const flags = { priority: "--priority", maxFires: "--max-fires", pauseAfterFailures: "--pause-after-failures" };
  const read = numbers
    .filter((name) => given[name] !== undefined)
    .map((name) => [name, wholeNumber(flags[name])(String(given[name]))] as const);
  return {
    ...given,
    ...Object.fromEntries(read),
    ...(params === undefined ? {} : { params: await readParams(String(params)) }),
    ...(payload === undefined ? {} : { payload: await readParams(String(payload)) }),
    ...(tag === undefined ? {} : { tags: tag }),
  };
}
