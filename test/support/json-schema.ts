// As much of JSON Schema as the document of the API uses.
import assert from "node:assert/strict";
import type { Schema } from "../../src/verbs/field.ts";

/** Where a value does not fit, and why; undefined if it does. An object has no fields but those of its schema. */
export function misfit(value: unknown, schema: Schema, root: Schema, at = "$"): string | undefined {
  const { $ref: ref, anyOf, enum: words, const: only, type, items, properties, required = [] } = schema as Words;
  if (ref !== undefined) return misfit(value, resolve(ref, root), root, at);
  if (anyOf !== undefined) {
    const misfits = anyOf.map((each) => misfit(value, each, root, at));
    return misfits.includes(undefined) ? undefined : misfits.join(" and ");
  }
  if (only !== undefined && value !== only) return `${at} is not ${JSON.stringify(only)}: ${JSON.stringify(value)}`;
  if (words !== undefined && !words.includes(value))
    return `${at} is none of ${words.join()}: ${JSON.stringify(value)}`;
  if (type === undefined) return undefined;
  if (!isOf(type, value)) return `${at} is no ${type}: ${JSON.stringify(value)?.slice(0, 100)}`;
  if (Array.isArray(value) && items !== undefined) {
    return firstOf(value.map((each, index) => () => misfit(each, items, root, `${at}[${index}]`)));
  }
  if (type !== "object") return ofPlain(value, schema, at);
  const found = value as Record<string, unknown>;
  const missing = required.find((name) => !Object.hasOwn(found, name));
  if (missing !== undefined) return `${at}.${missing} is missing`;
  const others = schema["additionalProperties"] as Schema | false | undefined;
  return firstOf(
    Object.entries(found).map(([name, each]) => () => {
      const known = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : others;
      if (known === undefined && properties === undefined) return undefined;
      if (known === undefined || known === false) return `${at}.${name} is not described`;
      return misfit(each, known, root, `${at}.${name}`);
    }),
  );
}

type Words = {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly type?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
};

export function resolve(ref: string, root: Schema): Schema {
  const found = ref
    .split("/")
    .slice(1)
    .reduce<unknown>((within, name) => (within as Record<string, unknown> | undefined)?.[name], root);
  return (found ?? assert.fail(`${ref} leads nowhere`)) as Schema;
}

function isOf(type: string, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function ofPlain(value: unknown, { format, minimum, maximum }: Schema, at: string): string | undefined {
  if (format === "date-time" && new Date(String(value)).toJSON() !== value) return `${at} is no time: ${String(value)}`;
  const [least, most] = [Number(minimum ?? -Infinity), Number(maximum ?? Infinity)];
  return typeof value === "number" && (value < least || value > most) ? `${at} is out of bounds: ${value}` : undefined;
}

function firstOf(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const found = check();
    if (found !== undefined) return found;
  }
  return undefined;
}
