import { CronPattern } from "croner";
import { type DaybookError, invalid, isDaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { nearest } from "../../core/suggest.ts";
import { checkFields } from "./cron-field.ts";
import { patternPlan } from "./pattern-plan.ts";
import { type Plan, everDue } from "./plan.ts";

/** The expression as it is stored, its six fields, and what it means. */
export type Cron = { readonly expression: string; readonly fields: readonly string[]; readonly plan: Plan };

const nicknames: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

// Ten thousand schedules have few different expressions; whoever has more pays for parsing, not with memory.
const cronsMax = 5000;
const crons = new Map<string, Cron>();

export function parseCron(given: string): Cron {
  const known = crons.get(given);
  if (known !== undefined) return known;
  const cron = parse(given);
  if (crons.size >= cronsMax) crons.clear();
  crons.set(given, cron);
  return cron;
}

function parse(given: string): Cron {
  const text = checkText(given);
  const written = nicknameOf(text) ?? text.toUpperCase();
  const split = written.split(" ");
  checkCount(split, given);
  const fields = split.length === 5 ? ["0", ...split] : split;
  try {
    checkFields(fields);
  } catch (error) {
    throw secondsLast(split, error) ?? error;
  }
  const plan = patternPlan(readPattern(fields, given));
  if (!everDue(plan)) throw invalid(`cron is ${quote(given)}, which is never due: no such day comes in those months`);
  return { expression: text.startsWith("@") ? text.toLowerCase() : written, fields, plan };
}

function checkText(given: unknown): string {
  if (typeof given !== "string") throw invalid(`cron is ${quote(given)}; it must be text such as "0 7 * * MON-FRI"`);
  if (given.length > limits.cronBytesMax) {
    throw invalid(`cron is ${quote(given)}, of ${given.length} characters; at most ${limits.cronBytesMax} are allowed`);
  }
  const foreign = /[^\t\u0020-\u007e]/u.exec(given)?.[0];
  if (foreign !== undefined) {
    const code = (foreign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    throw invalid(`cron is ${quote(given)}, which holds the character U+${code}; use plain letters and digits`);
  }
  const text = given.trim().replaceAll(/\s+/g, " ");
  if (text === "") throw invalid('cron is empty; write five fields such as "0 7 * * MON-FRI"');
  return text;
}

function nicknameOf(text: string): string | undefined {
  if (!text.startsWith("@")) return undefined;
  const meaning = Object.hasOwn(nicknames, text.toLowerCase()) ? nicknames[text.toLowerCase()] : undefined;
  if (meaning !== undefined) return meaning;
  const known = Object.keys(nicknames);
  const meant = nearest(text, known);
  const hint = meant === undefined ? "." : `: did you mean "${meant}"?`;
  throw invalid(`cron is ${quote(text)}, which is unknown${hint} Known: ${known.join(", ")}`);
}

function checkCount(fields: readonly string[], given: string): void {
  if (fields.length === 5 || fields.length === 6) return;
  const years = fields.length === 7 ? "; there is no field for years, use start and end" : "";
  throw invalid(
    `cron is ${quote(given)}, which has ${fields.length} ${fields.length === 1 ? "field" : "fields"}; write five (minute, ` +
      `hour, day of month, month, day of week), or six with the seconds first${years}`,
  );
}

/** Some programs write the seconds last. When that reading makes sense and ours does not, the message says so. */
function secondsLast(split: readonly string[], error: unknown): DaybookError | undefined {
  if (split.length !== 6 || !isDaybookError(error)) return undefined;
  const turned = [split[5] ?? "", ...split.slice(0, 5)];
  try {
    checkFields(turned);
  } catch {
    return undefined;
  }
  return invalid(`${error.message}. The seconds come first here: did you mean ${quote(turned.join(" "))}?`);
}

function readPattern(fields: readonly string[], given: string): CronPattern {
  try {
    return new CronPattern(fields.join(" "), undefined, { mode: "6-part" });
  } catch (error) {
    const why = Error.isError(error) ? error.message.replace("CronPattern: ", "") : String(error);
    throw invalid(`cron is ${quote(given)}, which cannot be read: ${why}`, { cause: error });
  }
}
