// Times are numbers in the library and ISO 8601 on the wire. The schema of an answer says where they stand, so that numbers of the
// user's own, in params or records, stay what they are.
import { isoTime } from "../core/time.ts";
import type { Schema } from "./field.ts";

export type Outputs = {
  readonly outputs: Readonly<Record<string, Schema>>;
  readonly defs: Readonly<Record<string, Schema>>;
};

export function toWire(value: unknown, schema: Schema | undefined, defs: Outputs["defs"]): unknown {
  if (schema === undefined || value === null || value === undefined) return value;
  if (typeof schema["$ref"] === "string") return toWire(value, defs[schema["$ref"].split("/").at(-1) ?? ""], defs);
  if (Array.isArray(schema["anyOf"])) return eitherToWire(value, schema["anyOf"] as Schema[], defs);
  if (schema["x-time"] !== undefined) return typeof value === "number" ? isoTime(value) : value;
  if (Array.isArray(value)) return value.map((each) => toWire(each, schema["items"] as Schema | undefined, defs));
  if (typeof value !== "object") return value;
  const known = (schema["properties"] ?? {}) as Record<string, Schema>;
  const others = schema["additionalProperties"] as Schema | undefined;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      toWire(each, Object.hasOwn(known, name) ? known[name] : others, defs),
    ]),
  );
}

// The first form in which something was a time; the others change nothing.
function eitherToWire(value: unknown, forms: readonly Schema[], defs: Outputs["defs"]): unknown {
  for (const form of forms) {
    if (!couldBe(value, form, defs)) continue;
    const made = toWire(value, form, defs);
    if (JSON.stringify(made) !== JSON.stringify(value)) return made;
  }
  return value;
}

function couldBe(value: unknown, form: Schema, defs: Outputs["defs"]): boolean {
  if (typeof form["$ref"] === "string") return couldBe(value, defs[form["$ref"].split("/").at(-1) ?? ""] ?? {}, defs);
  if (form["type"] === "object") return typeof value === "object" && !Array.isArray(value);
  if (form["type"] === "array") return Array.isArray(value);
  return typeof value !== "object";
}
