// JSON of any value that a registration was given, for people to read. It never throws, equal values have equal text, and parts
// without JSON are replaced by a placeholder.
import { limits } from "../core/limits.ts";

const placeholder = '"<NON_SERIALIZABLE>"';

/** Sorted JSON. A date, a URL and a bigint become text; a cycle, a function and the like become the placeholder, and so does a
 *  value that is too big. */
export function safeJson(value: unknown): string {
  try {
    const text = write(value, { within: [], left: limits.registrationJsonBytesMax }) ?? placeholder;
    return Buffer.byteLength(text) > limits.registrationJsonBytesMax ? placeholder : text;
  } catch {
    return placeholder;
  }
}

class TooBig extends Error {}

type Walk = { readonly within: readonly object[]; left: number };

/** Undefined: it is left out of an object, as JSON does. */
function write(value: unknown, walk: Walk): string | undefined {
  // Count while writing, so that a huge value is refused before it is written out.
  if ((walk.left -= typeof value === "string" ? value.length + 2 : 1) < 0) throw new TooBig();
  switch (typeof value) {
    case "undefined":
      return undefined;
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "number":
      return Number.isFinite(value) ? JSON.stringify(value) : placeholder;
    case "bigint":
      return `"${value}"`;
    case "object":
      return value === null ? "null" : writeObject(value, walk);
    default:
      return placeholder;
  }
}

function writeObject(value: object, walk: Walk): string {
  const { within } = walk;
  if (within.includes(value) || within.length >= limits.jsonDepthMax) return placeholder;
  try {
    if (value instanceof Date)
      return JSON.stringify(Number.isNaN(value.getTime()) ? String(value) : value.toISOString());
    if (value instanceof URL) return JSON.stringify(value.href);
    const inside: Walk = { within: [...within, value], left: walk.left };
    const text = Array.isArray(value) ? writeList(value, inside) : writeFields(value, inside);
    walk.left = inside.left;
    return text;
  } catch (error) {
    if (error instanceof TooBig) throw error;
    // For example a getter that throws, or a revoked proxy.
    return placeholder;
  }
}

function writeList(list: readonly unknown[], walk: Walk): string {
  return `[${Array.from(list, (each) => write(each, walk) ?? "null").join(",")}]`;
}

function writeFields(value: object, walk: Walk): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return placeholder;
  const fields: string[] = [];
  for (const key of Object.keys(value).toSorted()) {
    if ((walk.left -= key.length + 4) < 0) throw new TooBig();
    const text = write(Reflect.get(value, key), walk);
    if (text !== undefined) fields.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${fields.join(",")}}`;
}
