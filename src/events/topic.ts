// Topics and the patterns that match them. Both are segments between dots. A topic (`light.kitchen.changed`) names what
// was said; in a pattern `*` stands for exactly one segment, and `>` as the last one for all that follow, at least one.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";

export function checkTopic(value: string, what = "topic"): string {
  const problem = problemOf(value) ?? wildcardIn(value);
  if (problem !== undefined) throw invalid(`${what} ${quote(value)} ${problem}`);
  return value;
}

export function checkPattern(value: string, what = "pattern"): string {
  const problem = problemOf(value) ?? misplacedWildcardIn(value);
  if (problem !== undefined) throw invalid(`${what} ${quote(value)} ${problem}`);
  return value;
}

/** Whether one pattern matches one topic; both have been checked. Many patterns at once belong into an index. */
export function matchesTopic(pattern: string, topic: string): boolean {
  const wanted = pattern.split(".");
  const said = topic.split(".");
  if (wanted.at(-1) === ">") {
    wanted.pop();
    return said.length > wanted.length && wanted.every((segment, at) => segment === "*" || segment === said[at]);
  }
  return said.length === wanted.length && wanted.every((segment, at) => segment === "*" || segment === said[at]);
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  if (value === "") return 'is empty; write segments between dots, such as "light.kitchen.changed"';
  // A character is at least one byte: a huge text is refused before anything walks through it.
  const bytes = value.length > limits.topicBytesMax ? value.length : Buffer.byteLength(value);
  if (bytes > limits.topicBytesMax) {
    return `is ${bytes} bytes long; at most ${limits.topicBytesMax} are allowed: put what varies into the payload`;
  }
  if (!value.isWellFormed()) return "has a lone surrogate; clean it with text.toWellFormed()";
  if (/[\s\p{Cc}]/u.test(value)) return "has white space or a control character, such as U+0000; remove it";
  if (value.split(".").includes(""))
    return "has an empty segment; write one dot between two segments, none at the ends";
  return undefined;
}

function wildcardIn(topic: string): string | undefined {
  if (!topic.includes("*") && !topic.includes(">")) return undefined;
  return 'has "*" or ">", which are for patterns; say one topic';
}

function misplacedWildcardIn(pattern: string): string | undefined {
  const segments = pattern.split(".");
  const mixed = segments.find((segment) => segment.length > 1 && (segment.includes("*") || segment.includes(">")));
  if (mixed !== undefined) return `has ${quote(mixed)}; "*" and ">" stand alone, each as a whole segment`;
  const rest = segments.indexOf(">");
  if (rest >= 0 && rest < segments.length - 1) return 'has ">" before its end; use "*" for one segment in the middle';
  return undefined;
}
