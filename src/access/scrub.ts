// What is kept of an input for the audit: enough to see what was asked, never a secret, and never much.
import { limits } from "../core/limits.ts";
import { isObject } from "../core/json.ts";
import { storableText } from "../core/quote.ts";
import { hideSecrets } from "../core/secret.ts";

const hidden = "(hidden)";

// By their names. What a call sends is sealed in the book, so it must not stand here in clear.
const secretNames =
  /passw|passphrase|secret|token|authori[sz]ation|cookie|credential|signature|(?:api|private|access|signing)[-_]?key/i;
const sealedNames: ReadonlySet<string> = new Set(["headers", "header", "body", "json", "form"]);

/** The input as JSON, without what is secret by its name or its form, and cut. */
export function scrub(input: unknown): string | null {
  if (input === undefined || input === null) return null;
  const left = { items: limits.auditItemsMax * 4 };
  const text = JSON.stringify(scrubbed(input, 0, left)) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes <= limits.auditInputBytesMax) return text;
  // As it is one text then, no secret can be cut in half and so escape: they are hidden already.
  return JSON.stringify({ cut: storableText(text, limits.auditInputBytesMax / 2), bytes });
}

type Left = { items: number };

function scrubbed(value: unknown, depth: number, left: Left): unknown {
  if (typeof value === "string") return cutText(value);
  if (typeof value === "number" || typeof value === "boolean" || value === null) return value;
  if (typeof value !== "object") return `(${typeof value})`;
  if (depth >= depthMax || left.items <= 0) return "…";
  if (Array.isArray(value)) {
    const some = value.slice(0, limits.auditItemsMax).map((each: unknown) => scrubbed(each, depth + 1, spent(left)));
    return value.length > some.length ? [...some, `… ${value.length - some.length} more`] : some;
  }
  const names = isObject(value) ? Object.keys(value) : [];
  const shown = names.slice(0, limits.auditItemsMax).map((name) => {
    const each: unknown = (value as Record<string, unknown>)[name];
    return [cutText(name), isSecret(name) ? hide(each) : scrubbed(each, depth + 1, spent(left))] as const;
  });
  if (names.length > shown.length) shown.push(["…", `${names.length - shown.length} more`]);
  return Object.fromEntries(shown);
}

const depthMax = 8;

function spent(left: Left): Left {
  left.items -= 1;
  return left;
}

function isSecret(name: string): boolean {
  return secretNames.test(name) || sealedNames.has(name.toLowerCase());
}

/** That something was given is worth knowing; of flags and nothing there is nothing to hide. */
function hide(value: unknown): unknown {
  return value === undefined || value === null || typeof value === "boolean" ? value : hidden;
}

/** Addresses carry passwords before the host and tokens behind the question mark. */
function cutText(text: string): string {
  const short = hideSecrets(storableText(text, limits.auditTextBytesMax));
  // Each of them wants one of these, and most texts have none.
  if (!/:\/\/|\s/.test(short)) return short;
  return short
    .replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, `$1${hidden}@`)
    .replaceAll(/\b(https?:\/\/[^\s?#]*)[?#]\S*/gi, `$1?${hidden}`)
    .replaceAll(/\b(bearer|basic)\s+\S+/gi, `$1 ${hidden}`);
}
