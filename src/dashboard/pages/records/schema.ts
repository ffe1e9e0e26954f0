// What a type of record says of its documents, for columns, filters and forms.
import type { VerbAnswer } from "../../../client/verbs.ts";
import type { Schema } from "../../parts/schema-form.tsx";

export type RecordKind = VerbAnswer<"records.types">["items"][number];
export type Leaf = { readonly path: string; readonly schema: Schema; readonly isNeeded: boolean };

/** The JSON Schema of its documents, where its definition gave one. */
export function documentSchema(type: RecordKind | undefined): Schema | null {
  const found = at(at(type?.schema, "document"), "jsonSchema");
  return typeof found === "object" && found !== null ? found : null;
}

/** The field of an entity that is its key. */
export function keyField(type: RecordKind | undefined): string | undefined {
  const found = at(type?.schema, "key");
  return typeof found === "string" ? found : undefined;
}

/** Its fields, also those inside of objects: `status`, `shipTo.city`. */
export function leavesOf(schema: Schema | null, before = ""): readonly Leaf[] {
  return Object.entries(schema?.properties ?? {}).flatMap(([name, of]) =>
    of.properties === undefined
      ? [{ path: before + name, schema: of, isNeeded: schema?.required?.includes(name) === true }]
      : leavesOf(of, `${before}${name}.`),
  );
}

export function valueAt(value: unknown, path: string): unknown {
  return path.split(".").reduce(at, value);
}

function at(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

export function isNumber({ type }: Schema): boolean {
  return type === "number" || type === "integer";
}

export function isText({ type, enum: words }: Schema): boolean {
  return type === "string" || words?.every((word) => typeof word === "string") === true;
}
