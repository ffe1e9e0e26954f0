// What users check their values with: a Standard Schema, whatever library made it.
import { isDeepStrictEqual } from "node:util";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { invalid } from "./error.ts";
import { isObject } from "./json.ts";

export function isSchema(schema: unknown): schema is StandardSchemaV1 {
  const standard = (schema as Partial<StandardSchemaV1> | null | undefined)?.["~standard"];
  return typeof standard?.validate === "function";
}

/** The value that a schema made. `about` goes into the details of the error when the value did not fit. */
export function fitting(
  result: StandardSchemaV1.Result<unknown>,
  what: string,
  about: Readonly<Record<string, unknown>>,
): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ path, message }) => {
    const where = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return where === "" ? message : `${where}: ${message}`;
  });
  throw invalid(`${what}: ${issues.join("; ")}`, { details: { ...about, issues } });
}

/** The schema as JSON Schema; undefined when its library does not offer that, or cannot express this schema. */
export function jsonSchemaOf(schema: unknown, side: "input" | "output"): Record<string, unknown> | undefined {
  const { jsonSchema } = (schema as Partial<StandardJSONSchemaV1> | undefined)?.["~standard"] ?? {};
  try {
    const written: unknown = jsonSchema?.[side]({ target: "draft-2020-12" });
    return written === undefined ? undefined : (JSON.parse(JSON.stringify(written)) as Record<string, unknown>);
  } catch {
    return undefined;
  }
}

type Path = readonly (string | number)[];
type Issue = { readonly path: Path; readonly message: string };
type Fields = Readonly<Record<string, unknown>>;

/** Checks params by the JSON Schema of a definition, for a program that has only the book. It knows the common keywords; others
 *  refuse nothing, because the worker checks everything when the job runs. `pattern` is left out on purpose: a regular expression
 *  loses its flags in JSON Schema. */
export function standardSchema(schema: unknown): StandardSchemaV1 {
  return {
    "~standard": {
      version: 1,
      vendor: "daybook",
      validate(value) {
        const issues = findIssues(schema, value, []);
        return issues.length === 0 ? { value } : { issues };
      },
    },
  };
}

function findIssues(schema: unknown, value: unknown, path: Path): readonly Issue[] {
  if (schema === false) return [{ path, message: "is not expected" }];
  if (!isObject(schema)) return [];
  const wrong = wrongValue(schema, value);
  if (wrong !== undefined) return [{ path, message: wrong }];
  if (Array.isArray(value)) return itemIssues(schema, value, path);
  return isObject(value) ? propertyIssues(schema, value, path) : [];
}

function wrongValue(schema: Fields, value: unknown): string | undefined {
  const { type, enum: allowed, minimum, maximum, minLength, maxLength } = schema;
  const types = [type].flat().filter((each) => typeof each === "string");
  if (types.length > 0 && !types.some((each) => isOfType(each, value))) {
    return `is ${typeName(value)}, not ${types.join(" or ")}`;
  }
  if ("const" in schema && !isDeepStrictEqual(value, schema["const"]))
    return `is not ${JSON.stringify(schema["const"])}`;
  if (Array.isArray(allowed) && !allowed.some((each) => isDeepStrictEqual(value, each))) {
    return `is not one of ${allowed.map((each) => JSON.stringify(each)).join(", ")}`;
  }
  if (typeof value === "number") {
    if (typeof minimum === "number" && value < minimum) return `is ${value}, less than ${minimum}`;
    if (typeof maximum === "number" && value > maximum) return `is ${value}, more than ${maximum}`;
  }
  if (typeof value === "string") {
    // Libraries count UTF-16 code units and JSON Schema counts characters, so only lengths that are wrong both ways are refused.
    if (typeof minLength === "number" && value.length < minLength) return `has fewer than ${minLength} characters`;
    if (typeof maxLength === "number" && Array.from(value).length > maxLength)
      return `has more than ${maxLength} characters`;
  }
  return undefined;
}

// Beside `prefixItems`, or as a list, `items` is not about all items.
function itemIssues(schema: Fields, list: readonly unknown[], path: Path): readonly Issue[] {
  const { items, prefixItems } = schema;
  if (items === undefined || prefixItems !== undefined || Array.isArray(items)) return [];
  return list.flatMap((item, index) => findIssues(items, item, [...path, index]));
}

function propertyIssues(schema: Fields, value: Fields, path: Path): readonly Issue[] {
  const { required, additionalProperties, patternProperties } = schema;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  // A property that is undefined is not in the JSON.
  const given = Object.entries(value).filter(([, each]) => each !== undefined);
  const names = new Set(given.map(([name]) => name));
  const missing = (Array.isArray(required) ? required : []).filter((name) => !names.has(name as string));
  const others = patternProperties === undefined ? additionalProperties : undefined;
  return [
    ...missing.map((name) => ({ path: [...path, String(name)], message: "is missing" })),
    ...given.flatMap(([name, each]) =>
      findIssues(Object.hasOwn(properties, name) ? properties[name] : others, each, [...path, name]),
    ),
  ];
}

// An unknown type refuses nothing.
function isOfType(type: string, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  return !["string", "number", "boolean", "null", "array", "object"].includes(type) || typeName(value) === type;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
