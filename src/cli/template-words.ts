// A template in words, and its settings as a shell gives them.
import type { Command } from "commander";
import { formatDuration } from "../core/duration.ts";
import { parseJson } from "../core/json.ts";
import { isoTime } from "../core/time.ts";
import type { TemplateChanges, TemplateRecord, TemplateSettings } from "../jobs/template/template.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showFields, showJson, showTime } from "./show.ts";
import { wholeNumber } from "./whole-number.ts";

export function templateJson(template: TemplateRecord): Record<string, unknown> {
  return {
    ...template,
    createdAt: isoTime(template.createdAt),
    updatedAt: isoTime(template.updatedAt),
    archivedAt: isoOrNull(template.archivedAt),
  };
}

/** Everything about one template. */
export async function templateWords(template: TemplateRecord): Promise<string> {
  const fields: readonly (readonly [string, string | null])[] = [
    ["template", plainCell(template.name, 200)],
    ["job", plainCell(template.job, 200)],
    ["queue", template.queue === null ? null : plainCell(template.queue, 200)],
    ["priority", template.priority === null ? null : String(template.priority)],
    ["attempts", template.attempts === null ? null : String(template.attempts)],
    ["backoff", template.backoff === null ? null : plainCell(JSON.stringify(template.backoff), 200)],
    ["timeout", template.timeoutMs === null ? null : formatDuration(template.timeoutMs)],
    ["losses", template.losses === null ? null : String(template.losses)],
    ["revision", String(template.revision)],
    ["created", moment(template.createdAt)],
    ["updated", moment(template.updatedAt)],
    ["archived", template.archivedAt === null ? null : moment(template.archivedAt)],
  ];
  const said = fields.filter((field): field is readonly [string, string] => field[1] !== null);
  return `${await showFields(said)}\n\nparams\n${showJson(template.params)}`;
}

function moment(ms: number): string {
  const { ago, exact } = showTime(ms);
  return `${exact} (${ago})`;
}

type Given = { readonly [Setting in keyof TemplateSettings]?: string };

/** The options that create and edit share; `orNone` is what edit adds to each. */
export function addSettingOptions(command: Command, orNone = ""): Command {
  return command
    .option("--params <json>", 'default params as JSON, "@file" to read them from a file, "-" from standard input')
    .option("--queue <queue>", `the queue${orNone}`)
    .option("--priority <n>", `from -1000 to 1000, higher runs first${orNone}`)
    .option("--attempts <n>", `how often a job may be tried in total${orNone}`)
    .option("--backoff <list>", `the waits before each retry, such as 10s,1m,10m, or an object as JSON${orNone}`)
    .option("--timeout <duration>", `how long one run may take${orNone}`)
    .option("--losses <n>", `how often its process may be lost while it runs alone${orNone}`);
}

/** What is not said of a template is left to the definition of its job. */
export function toSettings({ queue, priority, attempts, backoff, timeout, losses }: Given): TemplateSettings {
  return {
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority: wholeNumber("--priority")(priority) }),
    ...(attempts === undefined ? {} : { attempts: wholeNumber("--attempts")(attempts) }),
    ...(backoff === undefined ? {} : { backoff: toBackoff(backoff) }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(losses === undefined ? {} : { losses: wholeNumber("--losses")(losses) }),
  };
}

/** The same, where "none" gives a setting back to the definition. */
export function toChanges(given: Given): TemplateChanges {
  const entries = Object.entries(given);
  const set: Given = Object.fromEntries(entries.filter(([, value]) => value !== "none"));
  const back = entries.filter(([, value]) => value === "none").map(([setting]) => [setting, null] as const);
  return { ...toSettings(set), ...Object.fromEntries<null>(back) };
}

// What is no list of durations, or lacks what an object needs, is refused by the library.
function toBackoff(text: string): NonNullable<TemplateSettings["backoff"]> {
  if (!text.startsWith("{")) return text.split(",").map((each) => each.trim());
  return parseJson(text, { what: "backoff" }) as NonNullable<TemplateSettings["backoff"]>;
}
