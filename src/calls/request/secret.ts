// What may be a secret. With a key from outside the book everything is sealed and nobody asks. Without one, what may be a secret is not
// kept, and it is told by its name, or because it looks like something that a machine made. A harmless text that is taken for a
// secret costs little, so whoever is in doubt says yes. Each text is read once, and a long one not at all.
import type { RequestContent } from "./content.ts";

/** Headers whose values say nothing about who sends them. */
const harmless: ReadonlySet<string> = new Set(
  `accept accept-encoding accept-language cache-control content-encoding content-language content-type idempotency-key
  user-agent`.split(/\s+/),
);

export function isHarmlessHeader(name: string): boolean {
  return harmless.has(name);
}

/** Words that name a secret wherever they stand, and short ones that would be found in too many others. */
const words =
  /passw|passphrase|passcode|secret|token|key|auth(?!or(?!i[sz]))|credential|cookie|session|signature|bearer|jwt|csrf|xsrf|nonce|hmac/i;
const shortWords = /(?<![a-z])(?:code|pin|otp|sig|sid|cvv|cvc|ssn|pwd?|pass|seed|private|mnemonic)s?(?![a-z])/i;
const shortWordsInside = /(?<=[a-z])(?:Code|Pin|Otp|Sig|Sid|Cvv|Cvc|Ssn|Pwd?|Pass|Seed|Private|Mnemonic)s?(?![a-z])/;
// Who logs in, in front of a host: `postgres://ada:hunter@db`.
const userInfo = /:\/\/[^/\s]*@/;
// Written so that its letters cannot be read as they are.
const encoded = /%[0-9a-f]{2}|\\u/i;

// A long number, also in groups: of a card, an account, a telephone. Times are numbers of another kind.
const longNumber = /\d(?:[ .-]?\d){8,}/;
const times = /\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?Z?)?/g;

const readMax = 65_536;

export function mayBeSecret(text: string): boolean {
  if (text.length > readMax || encoded.test(text) || userInfo.test(text)) return true;
  if (words.test(text) || shortWords.test(text) || shortWordsInside.test(text)) return true;
  const timeless = text.replaceAll(times, " time ");
  if (longNumber.test(timeless)) return true;
  for (const [run] of timeless.matchAll(/[A-Za-z0-9]{4,}/g)) if (!isPlain(run)) return true;
  return false;
}

/** A word as people write it, or a number. */
function isPlain(run: string): boolean {
  return /^\d+$/.test(run) || (run.length <= 20 && /^(?:[A-Z]?[a-z]{2,}(?:[A-Z][a-z]+){0,3}|[A-Z]{1,12})$/.test(run));
}

const mediaTypes = /^(?:application\/(?:[\w.-]+\+)?json|application\/x-www-form-urlencoded|text\/plain)\s*(?:;|$)/i;

/** Only what is text through and through can be looked through. */
export function mayHoldSecret(body: string, type: string): boolean {
  return !mediaTypes.test(type) || mayBeSecret(body);
}

/** Why a request is not even taken without a key: it is sent again and again, and it is always a secret. */
export function sureSecretOf({ headers, secrets }: RequestContent): string | undefined {
  if (secrets.length > 0) return "a webhook secret";
  for (const [name, value] of Object.entries(headers)) {
    if (harmless.has(name)) continue;
    const isNamed = words.test(name) || shortWords.test(name);
    if (isNamed || /^(?:basic|bearer|digest|negotiate|token|apikey)\s/i.test(value)) return `the header "${name}"`;
  }
  return undefined;
}

export function mayHaveSecret({ url, headers, body, base64 }: RequestContent): boolean {
  const { pathname, search } = new URL(url);
  if (mayBeSecret(pathname + search)) return true;
  if (Object.entries(headers).some(([name, value]) => !isShown(name, value) && mayBeSecret(`${name}: ${value}`))) {
    return true;
  }
  return body !== null && (base64 || mayHoldSecret(body, headers["content-type"] ?? ""));
}

/** A header that everybody may read. */
export function isShown(name: string, value: string): boolean {
  return harmless.has(name) && (name === "idempotency-key" || !mayBeSecret(value));
}
