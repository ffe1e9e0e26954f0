// What a type's schema says, as canonical text with a hash: the text is for people and for later comparison, the hash
// tells whether two programs mean the same.
import { createHash } from "node:crypto";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toJson } from "../core/json.ts";
import { jsonSchemaOf } from "../core/standard-schema.ts";
import type { AnyRecordType } from "./relation.ts";

export type SchemaText = { readonly text: string; readonly hash: string };

const known = new WeakMap<AnyRecordType, SchemaText>();

export function schemaText(type: AnyRecordType): SchemaText {
  let found = known.get(type);
  if (found === undefined) {
    const text = toJson(describe(type), { what: `the schema of "${type.name}"` });
    found = { text, hash: createHash("sha256").update(text).digest("hex") };
    known.set(type, found);
  }
  return found;
}

function describe(type: AnyRecordType): Record<string, unknown> {
  const document = type.schema === undefined ? { vendor: null } : describeDocument(type.schema);
  return type.kind === "entity"
    ? { kind: "entity", key: type.keyField, document }
    : { kind: "relation", from: type.from.name, to: type.to.name, instanceKey: type.instanceField, document };
}

// What cannot be written, such as a schema's own functions, is known by its library alone, and then a changed schema looks like
// the old one.
function describeDocument(schema: StandardSchemaV1): Record<string, unknown> {
  const { vendor } = schema["~standard"];
  const written = jsonSchemaOf(schema, "output");
  return written === undefined ? { vendor } : { vendor, jsonSchema: written };
}
