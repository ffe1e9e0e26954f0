// A document on its way in: checked by its schema, then written as canonical JSON, so that equal documents are equal text.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { fitting } from "../core/standard-schema.ts";
import { entityKey, relationKey, type RecordKey } from "./record-key.ts";
import type { AnyEntity } from "./entity.ts";
import type { AnyRecordType, AnyRelation } from "./relation.ts";

export type Document = { readonly value: unknown; readonly body: string };

export async function checkDocument(type: AnyRecordType, input: unknown): Promise<Document> {
  const value =
    type.schema === undefined ? checkEmpty(type.name, input) : await validate(type.name, type.schema, input);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid(`a document of "${type.name}" must be an object with named fields`);
  }
  return { value, body: toJson(value, { what: type.name }) };
}

async function validate(name: string, schema: StandardSchemaV1, input: unknown): Promise<unknown> {
  const what = `the document does not fit the schema of "${name}"`;
  return fitting(await schema["~standard"].validate(input), what, { type: name });
}

function checkEmpty(name: string, input: unknown): unknown {
  if (input === undefined || (typeof input === "object" && input !== null && Object.keys(input).length === 0))
    return {};
  throw invalid(`"${name}" has no schema, so it knows nothing but its endpoints: give it a schema to keep more`);
}

export function keyOfDocument(type: AnyEntity, { value }: Document): RecordKey {
  return { key: entityKey(type.keyOf(value), `the key of "${type.name}"`), ends: null };
}

export function keyOfLink(type: AnyRelation, from: string, to: string, { value }: Document): RecordKey {
  const instance = type.instanceOf === undefined ? "" : type.instanceOf(value);
  if (type.instanceOf !== undefined) entityKey(instance, `the instance of "${type.name}"`);
  return relationKey(type.name, { from, to, instance: instance as string });
}
