// Seals text with a key that is kept outside the book (AES-256-GCM). Sealed text names the key it needs, so keys can be changed:
// the first key of a ring seals, and all of them open.
import { createCipheriv, createDecipheriv, createHash, getRandomValues } from "node:crypto";
import { DaybookError, invalid } from "./error.ts";

export type KeyRing = {
  /** The id of the key that seals. */
  readonly id: string;
  /** `about` names what the text belongs to, its first line for people; sealed text that is moved to something else does not open there. */
  seal(text: string, about: string): string;
  open(sealed: string, about: string): string;
  /** Whether it has this key. */
  opens(keyId: string): boolean;
};

const version = "v1";

/** A ring of keys: 32 bytes each, as bytes, hex or base64; in one text they are separated by commas. */
export function keyRing(given: string | Uint8Array | readonly (string | Uint8Array)[]): KeyRing {
  const list = typeof given === "string" ? given.split(",") : given instanceof Uint8Array ? [given] : given;
  const keys = list.map((each) => readKey(each));
  const [first] = keys;
  if (first === undefined) throw invalid(`an empty list of keys: ${advice}`);
  const byId = new Map(keys.map((key) => [idOf(key), key]));
  const id = idOf(first);
  return {
    id,
    opens: (keyId) => byId.has(keyId),
    seal(text, about) {
      // Twelve random bytes for each text: a key may seal some billions before two could be the same.
      const iv = getRandomValues(new Uint8Array(12));
      const cipher = createCipheriv("aes-256-gcm", first, iv).setAAD(Buffer.from(about));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return [version, id, Buffer.from(iv).toString("base64url"), sealed.toString("base64url")].join(".");
    },
    open(sealed, about) {
      const [form, keyId = "", iv = "", content = ""] = sealed.split(".");
      const key = byId.get(keyId);
      if (form !== version || key === undefined) throw unknownKey(about, keyId);
      const bytes = Buffer.from(content, "base64url");
      const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(iv, "base64url"))
        .setAAD(Buffer.from(about))
        .setAuthTag(bytes.subarray(-16));
      try {
        return decipher.update(bytes.subarray(0, -16), undefined, "utf8") + decipher.final("utf8");
      } catch {
        throw new DaybookError("internal", `what was sealed for ${nameOf(about)} was changed: it does not open`);
      }
    },
  };
}

const advice = "make one with: node -p \"crypto.randomBytes(32).toString('base64')\"";

function readKey(given: string | Uint8Array): Buffer {
  if (given instanceof Uint8Array) {
    if (given.length === 32) return Buffer.from(given);
    throw invalid(`a key has 32 bytes, not ${given.length}: ${advice}`);
  }
  // A bad key is never shown, because it may be a good one with a typing error.
  if (typeof given !== "string") throw invalid(`a key is 32 bytes, as base64 or hex: ${advice}`);
  const text = given.trim();
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
  if (bytes.length !== 32) throw invalid(`a key is 32 bytes as base64 or hex; this one has ${bytes.length}: ${advice}`);
  return bytes;
}

// Part of a hash of 256 random bits: enough to tell keys apart, and no way back.
function idOf(key: Buffer): string {
  return createHash("sha256").update("daybook key").update(key).digest("hex").slice(0, 8);
}

/** Opens with a ring, or says that there is none. */
export function openSealed(keys: KeyRing | undefined, sealed: string, about: string): string {
  if (keys === undefined) throw unknownKey(about, sealed.split(".")[1] ?? "");
  return keys.open(sealed, about);
}

function nameOf(about: string): string {
  return about.split("\n", 1)[0] ?? "";
}

function unknownKey(about: string, keyId: string): DaybookError {
  return new DaybookError(
    "unavailable",
    `${nameOf(about)} is sealed with key ${keyId}, which this process does not have: give it with DAYBOOK_KEY or open(…, { calls: { key } })`,
    { details: { keyId } },
  );
}
