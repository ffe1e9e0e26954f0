// Times are numbers in the library and ISO 8601 on the wire. The schema of an answer says where they stand, so that numbers and texts
// of the user's own, in params or records, stay what they are.
import { isoTime } from "../core/time.ts";
import type { Schema } from "./field.ts";

export type Outputs = {
  readonly outputs: Readonly<Record<string, Schema>>;
  readonly defs: Readonly<Record<string, Schema>>;
};

/** An answer as it leaves the process: times as ISO 8601. */
export function toWire(value: unknown, schema: Schema | undefined, defs: Outputs["defs"]): unknown {
  return translate(value, schema, { defs, time: (given) => (typeof given === "number" ? isoTime(given) : given) });
}

/** An answer as the library gives it, from what another process was told: its times are numbers again. */
export function fromWire(value: unknown, schema: Schema | undefined, defs: Outputs["defs"]): unknown {
  return translate(value, schema, { defs, time: (given) => (typeof given === "string" ? epochMs(given) : given) });
}

/** What is not a time as `isoTime` writes it is not ours to read. */
function epochMs(text: string): unknown {
  const ms = Date.parse(text);
  return Number.isNaN(ms) || isoTime(ms) !== text ? text : ms;
}

type Translation = { readonly defs: Outputs["defs"]; readonly time: (given: unknown) => unknown };

function translate(value: unknown, schema: Schema | undefined, how: Translation): unknown {
  if (schema === undefined || value === null || value === undefined) return value;
  if (typeof schema["$ref"] === "string") return translate(value, refOf(schema["$ref"], how), how);
  if (Array.isArray(schema["anyOf"])) return eitherOf(value, schema["anyOf"] as Schema[], how);
  if (schema["x-time"] !== undefined) return how.time(value);
  if (Array.isArray(value)) return value.map((each) => translate(each, schema["items"] as Schema | undefined, how));
  if (typeof value !== "object") return value;
  const known = (schema["properties"] ?? {}) as Record<string, Schema>;
  const others = schema["additionalProperties"] as Schema | undefined;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      translate(each, Object.hasOwn(known, name) ? known[name] : others, how),
    ]),
  );
}

// The form whose names are all there; where several are, or none is, the first in which something was a time.
function eitherOf(value: unknown, all: readonly Schema[], how: Translation): unknown {
  const forms = all.filter((form) => couldBe(value, form, how));
  const whole = forms.filter((form) => isWhole(value, form, how));
  for (const form of [...whole, ...forms]) {
    if (forms.length === 1) return translate(value, form, how);
    const made = translate(value, form, how);
    if (JSON.stringify(made) !== JSON.stringify(value)) return made;
  }
  return value;
}

function couldBe(value: unknown, form: Schema, how: Translation): boolean {
  if (typeof form["$ref"] === "string") return couldBe(value, refOf(form["$ref"], how) ?? {}, how);
  if (form["type"] === "object") return typeof value === "object" && !Array.isArray(value);
  if (form["type"] === "array") return Array.isArray(value);
  return typeof value !== "object";
}

function isWhole(value: unknown, form: Schema, how: Translation): boolean {
  if (typeof form["$ref"] === "string") return isWhole(value, refOf(form["$ref"], how) ?? {}, how);
  const { required = [] } = form as { readonly required?: readonly string[] };
  return typeof value !== "object" || value === null || required.every((name) => Object.hasOwn(value, name));
}

function refOf(ref: string, { defs }: Translation): Schema | undefined {
  return defs[ref.split("/").at(-1) ?? ""];
}
