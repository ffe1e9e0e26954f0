// Times are numbers in the library and ISO 8601 on the wire. The schema of an answer says where they stand, so that numbers and texts
// of the user's own, in params or records, stay what they are.
import { rememberFor } from "../core/remember.ts";
import { isoTime } from "../core/time.ts";
import type { Schema } from "./field.ts";

export type Outputs = {
  readonly outputs: Readonly<Record<string, Schema>>;
  readonly defs: Readonly<Record<string, Schema>>;
};

/** An answer as it leaves the process: times as ISO 8601. */
export function toWire(value: unknown, schema: Schema | undefined, defs: Outputs["defs"]): unknown {
  return translate(value, schema, outward(defs));
}

/** An answer as the library gives it, from what another process was told: its times are numbers again. */
export function fromWire(value: unknown, schema: Schema | undefined, defs: Outputs["defs"]): unknown {
  return translate(value, schema, inward(defs));
}

const outward = rememberFor((defs: Outputs["defs"]) =>
  translationOf(defs, (given) => (typeof given === "number" ? isoTime(given) : given)),
);

const inward = rememberFor((defs: Outputs["defs"]) =>
  translationOf(defs, (given) => (typeof given === "string" ? epochMs(given) : given)),
);

/** What is not a time as `isoTime` writes it is not ours to read. */
function epochMs(text: string): unknown {
  const ms = Date.parse(text);
  return Number.isNaN(ms) || isoTime(ms) !== text ? text : ms;
}

type Translate = (value: unknown) => unknown;

/** How what a schema describes is translated, read once from the schema: `undefined` where there is no time in it. */
type Translation = { readonly defs: Outputs["defs"]; readonly time: Translate; readonly of: (schema: Schema) => Made };
type Made = { readonly run: Translate | undefined };

function translationOf(defs: Outputs["defs"], time: Translate): Translation {
  const how: Translation = { defs, time, of: rememberFor((schema) => ({ run: make(schema, how) })) };
  return how;
}

function translate(value: unknown, schema: Schema | undefined, how: Translation): unknown {
  const run = schema === undefined ? undefined : how.of(schema).run;
  return run === undefined || value === null || value === undefined ? value : run(value);
}

function make(schema: Schema, how: Translation): Translate | undefined {
  if (!holdsTime(schema, how, new Set())) return undefined;
  if (typeof schema["$ref"] === "string") {
    const target = refOf(schema["$ref"], how);
    return (value) => translate(value, target, how);
  }
  if (Array.isArray(schema["anyOf"])) {
    const forms = schema["anyOf"] as Schema[];
    return (value) => eitherOf(value, forms, how);
  }
  if (schema["x-time"] !== undefined) return how.time;
  const items = schema["items"] as Schema | undefined;
  const rest = schema["additionalProperties"] as Schema | undefined;
  const others = holdsTime(rest, how, new Set()) ? rest : undefined;
  const known = (schema["properties"] ?? {}) as Record<string, Schema>;
  const timed = Object.entries(known).filter(([, each]) => holdsTime(each, how, new Set()));
  return (value) => {
    if (Array.isArray(value)) return value.map((each) => translate(each, items, how));
    if (typeof value !== "object") return value;
    const made = { ...value } as Record<string, unknown>;
    for (const [name, each] of timed) if (Object.hasOwn(made, name)) made[name] = translate(made[name], each, how);
    if (others === undefined) return made;
    for (const name of Object.keys(made)) {
      if (!Object.hasOwn(known, name)) setField(made, name, translate(made[name], others, how));
    }
    return made;
  };
}

/** A field whatever its name says: `__proto__` too. */
function setField(into: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(into, name, { value, enumerable: true, writable: true, configurable: true });
}

function holdsTime(schema: unknown, how: Translation, seen: Set<unknown>): boolean {
  if (typeof schema !== "object" || schema === null || seen.has(schema)) return false;
  seen.add(schema);
  const { $ref: ref, anyOf, items, properties, additionalProperties: others, "x-time": time } = schema as Schema;
  if (typeof ref === "string") return holdsTime(refOf(ref, how), how, seen);
  const forms = (anyOf ?? []) as readonly unknown[];
  const inside: readonly unknown[] = [
    ...Object.values((properties ?? {}) as Record<string, Schema>),
    ...forms,
    items,
    others,
  ];
  return time !== undefined || inside.some((each) => holdsTime(each, how, seen));
}

// The form whose names are all there; where several are, or none is, the first in which something was a time.
function eitherOf(value: unknown, all: readonly Schema[], how: Translation): unknown {
  const forms = all.filter((form) => couldBe(value, form, how));
  const [only, other] = forms;
  if (other === undefined) return translate(value, only, how);
  const whole = forms.filter((form) => isWhole(value, form, how));
  for (const form of [...whole, ...forms]) {
    const made = translate(value, form, how);
    if (made !== value && JSON.stringify(made) !== JSON.stringify(value)) return made;
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

function refOf(ref: string, { defs }: Pick<Translation, "defs">): Schema | undefined {
  return defs[ref.split("/").at(-1) ?? ""];
}
