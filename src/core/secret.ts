// Secrets that let somebody in. They are made here, shown once, and kept as a hash alone: 256 random bits need no slow hash, because
// nobody can try them all.
import { getRandomValues, hash, timingSafeEqual } from "node:crypto";

/** `token` is given to programs, `link` opens one login, `login` is what a browser keeps, `lease` ends one run. */
export type SecretKind = "token" | "link" | "login" | "lease";

const prefixes: Readonly<Record<SecretKind, string>> = { token: "dbk_", link: "dbo_", login: "dbl_", lease: "dbw_" };
const pattern = /db[klow]_[A-Za-z0-9_-]{20,}/g;

// 32 letters that are told apart by people: five bits each.
const letters = "abcdefghjkmnpqrstuvwxyz023456789";
const publicLetters = 10;
const secretBytes = 32;

/** A token's secret begins with its public id, which finds it: `dbk_` id `_` 43 characters. */
export function newToken(): { readonly id: string; readonly secret: string } {
  const id = Array.from(randomBytes(publicLetters), (byte) => letters[byte % letters.length]).join("");
  return { id, secret: `${prefixes.token}${id}_${randomText()}` };
}

export function newSecret(kind: "link" | "login" | "lease"): string {
  return `${prefixes[kind]}${randomText()}`;
}

/** What kind of secret a text has the form of, and for a token its id; undefined for a text that can be none. */
export function readSecret(text: unknown): { readonly kind: SecretKind; readonly id: string } | undefined {
  if (typeof text !== "string") return undefined;
  const [, token, link, login] = /^(?:dbk_([a-z0-9]{10})_[\w-]{43}|dbo_([\w-]{43})|dbl_([\w-]{43}))$/.exec(text) ?? [];
  if (token !== undefined) return { kind: "token", id: token };
  if (link !== undefined) return { kind: "link", id: "" };
  return login === undefined ? undefined : { kind: "login", id: "" };
}

export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

/** Takes as long for a hash that differs in its first letter as for one that differs in its last. */
export function isSameHash(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one, "base64url"), Buffer.from(other, "base64url")];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The text without the secrets in it. */
export function hideSecrets(text: string): string {
  return text.includes("db") ? text.replaceAll(pattern, (found) => `${found.slice(0, 4)}…`) : text;
}

function randomText(): string {
  return Buffer.from(randomBytes(secretBytes)).toString("base64url");
}

function randomBytes(count: number): Uint8Array {
  return getRandomValues(new Uint8Array(count));
}
