import { CronPattern } from "croner";
import { invalid, isDaybookError, type DaybookError } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { remember } from "../../core/remember.ts";
import { nearest } from "../../core/suggest.ts";
import { patternPlan, everDue, type Plan } from "./plan.ts";

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

// Ten thousand schedules have few different expressions.
export const parseCron: (given: string) => Cron = remember(parse, { max: 5000 });

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

/** Some programs write the seconds last. If that reading is valid and ours is not, the message says so. */
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

type Field = {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
};

const months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** In the order in which they are written when there are six. */
const fields: readonly Field[] = [
  { name: "second", min: 0, max: 59 },
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12, names: months },
  { name: "day of week", min: 0, max: 7, names: weekdays },
];

/**
 * Checks the six fields, in capitals. The parser would find most of this too, but it reads numbers loosely ("5X" is 5)
 * and does not say how to write what was meant.
 */
export function checkFields(texts: readonly string[]): void {
  for (const [index, field] of fields.entries()) {
    const text = texts[index] ?? "";
    for (const item of text.split(",")) checkItem(field, item, text);
  }
}

function checkItem(field: Field, item: string, text: string): void {
  const wrong = (why: string) => invalid(`cron: the ${field.name} is ${quote(text)}; ${why}`);
  if (item === "") throw wrong("a part of its list is empty");
  if (item === "*" || isDayWord(field, item, text)) return;

  const [range = "", step, ...rest] = item.split("/");
  if (step !== undefined) {
    const most = field.max - field.min + (field.names === weekdays ? 0 : 1);
    if (rest.length > 0 || !isNumber(step, 1, most)) {
      throw wrong(`the step in ${quote(item)} must be a whole number from 1 to ${most}`);
    }
    if (range === "*") return;
    if (!range.includes("-")) {
      throw wrong(`write ${quote(`${range}-${field.max}/${step}`)} for ${quote(item)}: a step needs a range or "*"`);
    }
  }

  const [from = "", to, ...more] = range.split("-");
  const low = valueOf(field, from);
  // Sunday is 0 and 7, so that a week may end with it.
  const high = to === "SUN" && field.names === weekdays ? 7 : to === undefined ? low : valueOf(field, to);
  if (low === undefined || high === undefined || more.length > 0)
    throw wrong(`${quote(item)} is not ${allowed(field)}`);
  if (low > high) {
    const top = field.names === weekdays ? 6 : field.max;
    const written = `${low}-${top},${field.min}-${high}`;
    throw wrong(`${quote(range)} runs backwards; write ${quote(written)} if it should go past the end`);
  }
}

/** The forms that only days have: L, LW, 15W and ? in the month, 5L, MON#1 and ? in the week. */
function isDayWord(field: Field, item: string, text: string): boolean {
  if (field.name === "day of month") {
    if (item === "L" || (item === "LW" && text === "LW") || item === "?") return true;
    return item.endsWith("W") && valueOf(field, item.slice(0, -1)) !== undefined;
  }
  if (field.names !== weekdays) return false;
  if (item === "?") return true;
  const [day = "", nth] = item.split("#");
  if (nth !== undefined) return isNumber(nth, 1, 5) && item === `${day}#${nth}` && valueOf(field, day) !== undefined;
  return item.endsWith("L") && valueOf(field, item.slice(0, -1)) !== undefined;
}

function valueOf(field: Field, text: string): number | undefined {
  const index = field.names?.indexOf(text) ?? -1;
  if (index >= 0) return index + field.min;
  return isNumber(text, field.min, field.max) ? Number(text) : undefined;
}

function isNumber(text: string, min: number, max: number): boolean {
  return /^\d{1,2}$/.test(text) && Number(text) >= min && Number(text) <= max;
}

function allowed(field: Field): string {
  const words = field.names === undefined ? "" : ` or ${field.names[0]} to ${field.names.at(-1)}`;
  const day = field.name === "day of month" ? ', "L", "LW" alone, or a weekday near it such as "15W"' : "";
  const week = field.names === weekdays ? ', or one such as "5L" (the last Friday), "MON#1" (the first Monday)' : "";
  return `a number from ${field.min} to ${field.max}${words}, a range, a step such as "*/2"${day}${week}`;
}
