// Which names stand for secrets: of headers, of query parameters, of fields in a body. They are known by their words, so
// that "accessToken", "access_token" and "X-Access-Token" are one, and "author" or "tokens" are none.

const words: ReadonlySet<string> = new Set([
  ...["auth", "authorization", "authentication", "cookie", "cookie2", "token", "secret", "password", "passwd", "pwd"],
  ...["passphrase", "passcode", "credential", "credentials", "jwt", "bearer", "signature", "sig", "hmac", "otp", "cvv"],
  ...[
    "cvc",
    "ssn",
    "pin",
    "session",
    "sessionid",
    "sid",
    "apikey",
    "accesstoken",
    "authtoken",
    "csrf",
    "xsrf",
    "nonce",
  ],
]);

/** Words that are secret only before "key", or in a query as a whole. */
const keyWords: ReadonlySet<string> = new Set(["api", "access", "private", "secret", "auth", "signing", "encryption"]);
const queryWords: ReadonlySet<string> = new Set(["key", "code", "hash", "access"]);

// The same few names come again with every call.
const known = new Map<string, boolean>();
const knownMax = 1000;

export function isSecretName(name: string): boolean {
  const found = known.get(name);
  if (found !== undefined) return found;
  const secret = readName(name);
  if (known.size >= knownMax) known.clear();
  if (name.length <= 100) known.set(name, secret);
  return secret;
}

function readName(name: string): boolean {
  const parts = name
    .slice(0, 200)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return parts.some((part, index) => words.has(part) || (part === "key" && keyWords.has(parts[index - 1] ?? "")));
}

export function isSecretParameter(name: string): boolean {
  return queryWords.has(name.toLowerCase()) || isSecretName(name);
}
