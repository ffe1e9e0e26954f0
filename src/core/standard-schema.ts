// What users check their values with: a Standard Schema, whatever library made it.
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { invalid } from "./error.ts";

export function isSchema(schema: unknown): schema is StandardSchemaV1 {
  const standard = (schema as Partial<StandardSchemaV1> | null | undefined)?.["~standard"];
  return typeof standard?.validate === "function";
}

/** What a schema made of a value. `about` says in the error what it was that did not fit. */
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

/** The schema as JSON Schema. Not every library offers it, and one that does may find that a schema cannot be said in JSON: then
 *  undefined. */
export function jsonSchemaOf(schema: unknown, side: "input" | "output"): Record<string, unknown> | undefined {
  const { jsonSchema } = (schema as Partial<StandardJSONSchemaV1> | undefined)?.["~standard"] ?? {};
  try {
    const written: unknown = jsonSchema?.[side]({ target: "draft-2020-12" });
    return written === undefined ? undefined : (JSON.parse(JSON.stringify(written)) as Record<string, unknown>);
  } catch {
    return undefined;
  }
}
