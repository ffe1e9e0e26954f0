// The headers of a call. What belongs to the connection is the client's own, and nothing may smuggle in a line of its own.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";

const forbidden: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "te", "trailer", "expect"],
  ...["http2-settings", "via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"],
  ...[
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "date",
    "accept-charset",
    "access-control-request-method",
  ],
]);

const tokenPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The headers by their names in lower case. */
export function checkHeaders(given: unknown): Record<string, string> {
  if (given === undefined) return {};
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid('headers are pairs of names and texts, such as { accept: "application/json" }');
  }
  const entries = Object.entries(given);
  if (entries.length > limits.callHeadersMax) {
    throw invalid(`${entries.length} headers: at most ${limits.callHeadersMax}`);
  }
  const headers = new Map<string, string>();
  for (const [given_, value] of entries) {
    const name = given_.toLowerCase();
    if (!tokenPattern.test(name)) throw invalid(`${quote(given_)} is not the name of a header`);
    if (forbidden.has(name) || name.startsWith("proxy-") || name.startsWith("sec-")) {
      throw invalid(`the header ${quote(given_)} is the client's own: leave it out`);
    }
    if (headers.has(name)) throw invalid(`the header ${quote(given_)} is there twice, but for its case`);
    headers.set(name, checkValue(given_, value));
  }
  return Object.fromEntries(headers);
}

// The value is never shown: a header that is refused may be the one with the token.
function checkValue(name: string, value: unknown): string {
  if (typeof value !== "string") throw invalid(`the header ${quote(name)} is no text`);
  if (Buffer.byteLength(value) > limits.callHeaderBytesMax) {
    throw invalid(`the header ${quote(name)} is longer than ${limits.callHeaderBytesMax} bytes`);
  }
  // Visible ASCII, space and tab; bytes above it mean something else to each server.
  if (!/^[\t\x20-\x7e]*$/.test(value)) {
    throw invalid(`the header ${quote(name)} has a line break, a control character or a letter beyond ASCII`);
  }
  return value.trim();
}
