// Which failures are the same one. What varies from run to run (numbers, ids, quoted values) is left out of the message,
// so that "order 17 is gone" and "order 18 is gone" are one error that happened twice.
import { createHash } from "node:crypto";

const lengthMax = 300;

export function fingerprint(errorType: string, message: string): string {
  const hash = createHash("sha256").update(`${errorType}\n${essence(message)}`);
  return hash.digest("hex").slice(0, 16);
}

/** The first line of a message without what varies. */
export function essence(message: string): string {
  const line = message.slice(0, 4 * lengthMax).split("\n", 1)[0] ?? "";
  return line
    .replaceAll(/"[^"]*"|'[^']*'|`[^`]*`/g, "…")
    .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{7,}\b|\d+(?:[.:,]\d+)*/gi, "#")
    .slice(0, lengthMax);
}
