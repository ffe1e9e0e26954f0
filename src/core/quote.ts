// Values as text: quoted for a message, or fit for both databases.
const lengthMax = 60;

/** A value for a message: short, on one line, and safe to print whatever it holds. */
export function quote(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > lengthMax ? `${value.slice(0, lengthMax)}…` : value);
    case "object":
      return value === null ? "null" : "an object";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    case "bigint":
      // Writing out a huge bigint takes long and tells the reader no more.
      return "a bigint";
    default:
      return String(value);
  }
}

const encoder = new TextEncoder();
const ellipsis = "…";

/**
 * Text that both databases accept, in at most `bytesMax` bytes of UTF-8. U+0000 and lone surrogates become U+FFFD:
 * PostgreSQL refuses them, and recording that something failed must not fail in turn. A cut is marked with "…".
 */
export function storableText(text: string, bytesMax: number): string {
  // A character is at least one byte, so the rest cannot fit: a huge text is cut before it is scanned.
  const head = text
    .slice(0, bytesMax + 1)
    .toWellFormed()
    .replaceAll("\0", "\uFFFD");
  if (Buffer.byteLength(head) <= bytesMax) return head;
  const room = new Uint8Array(Math.max(0, bytesMax - Buffer.byteLength(ellipsis)));
  // encodeInto stops before a character that does not fit whole, and says how far it got.
  return head.slice(0, encoder.encodeInto(head, room).read) + ellipsis;
}
