import { invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

/**
 * Checks a name that people give to things (a job, a queue, an app). Names are identities that history follows and that
 * appear in logs and URLs, so whatever cannot be seen is refused: two names that look alike should be alike.
 */
export function checkName(value: string, what: string): string {
  const problem = problemOf(value);
  if (problem !== undefined) throw invalid(`${what} ${quote(value)} ${problem}`);
  return value;
}

/** Checks a key that a program makes (unique, idempotency, limit, order): anything that can be stored and indexed. */
export function checkKey(value: string, what: string): string {
  if (typeof value !== "string" || value === "") throw invalid(`${what} ${quote(value)} must be a text, not empty`);
  if (!value.isWellFormed() || value.includes("\0")) {
    throw invalid(`${what} ${quote(value)} has a lone surrogate or U+0000; remove it`);
  }
  const bytes = Buffer.byteLength(value);
  if (bytes > limits.keyBytesMax) {
    throw invalid(`${what} is ${bytes} bytes long; at most ${limits.keyBytesMax} are allowed: use a hash of it`);
  }
  return value;
}

/** Checks the tags of a job or a call, and returns each once. */
export function checkTags(tags: readonly string[]): readonly string[] {
  if (!Array.isArray(tags)) throw invalid('tags is a list of texts, such as ["mail", "eu"]');
  if (tags.length > limits.tagsMax) throw invalid(`${tags.length} tags: at most ${limits.tagsMax}`);
  for (const tag of tags as readonly string[]) {
    const bytes = Buffer.byteLength(checkName(tag, "tag"));
    if (bytes <= limits.tagBytesMax) continue;
    throw invalid(`tag ${quote(tag)} is ${bytes} bytes long; at most ${limits.tagBytesMax}`);
  }
  return [...new Set(tags as readonly string[])];
}

/** Checks a tenant's name, which is stricter because it is part of URLs, file names and every index. */
export function checkTenant(value: string): string {
  if (typeof value !== "string" || !/^[A-Za-z0-9._:-]+$/.test(value) || value.length > limits.nameBytesMax) {
    throw invalid(`tenant ${quote(value)} must be 1 to ${limits.nameBytesMax} letters (a-z), digits or any of . _ - :`);
  }
  return value;
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  if (value === "") return "is empty; give it at least one character";
  if (!value.isWellFormed()) return "has a lone surrogate; clean it with text.toWellFormed()";
  if (/\p{Cc}/u.test(value)) return "has a control character, such as a line break or U+0000; remove it";
  if (value.trim() !== value) return "begins or ends with white space; trim it";
  const bytes = Buffer.byteLength(value);
  if (bytes > limits.nameBytesMax) return `is ${bytes} bytes long; at most ${limits.nameBytesMax} are allowed`;
  return undefined;
}
