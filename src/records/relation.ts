// A relation: a record that connects two entities. It is found by its endpoints and, where there may be several between
// the same two, by an instance key.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { checkSchema, checkTypeName, keyReader, type AnyEntity, type Entity } from "./entity.ts";
import type { StoredType } from "./record-type.ts";
import { checkIndexes, type Index, type IndexInput, type Path } from "./field-index.ts";

export type RelationOptions<From extends AnyEntity, To extends AnyEntity, Schema extends StandardSchemaV1> = {
  readonly from: From;
  readonly to: To;
  /** Checks and types what the relation itself knows; without one it knows nothing but its endpoints. */
  readonly schema?: Schema;
  /** The field, or a function of the document, that tells several relations between the same two apart. */
  readonly instanceKey?:
    | (keyof StandardSchemaV1.InferOutput<Schema> & string)
    | ((value: StandardSchemaV1.InferOutput<Schema>) => string);
  readonly indexes?: readonly IndexInput<StandardSchemaV1.InferOutput<Schema>>[];
};

export type AnyRelation = {
  readonly kind: "relation";
  readonly name: string;
  readonly from: AnyEntity;
  readonly to: AnyEntity;
  readonly schema: StandardSchemaV1 | undefined;
  readonly instanceOf: ((value: unknown) => unknown) | undefined;
  readonly instanceField: string | null;
  readonly indexes: readonly Index[];
  readonly search: readonly Path[];
  /** Set when it was made from what the book knows of it, and not from code. */
  readonly stored?: StoredType;
};

export type Relation<From = unknown, To = unknown, Input = unknown, Value = unknown> = AnyRelation & {
  /** For the compiler alone; there is nothing here when the program runs. */
  readonly "~types"?: { readonly input: Input; readonly value: Value; readonly from: From; readonly to: To };
};

export type AnyRecordType = AnyEntity | AnyRelation;

/** Refuses a name where a definition is wanted; everything else would be asked of a type that is not there. */
export function checkDefinition<Type extends AnyRecordType>(type: Type, what: string): Type {
  const { kind } = (type ?? {}) as { kind?: unknown };
  if (kind === "entity" || kind === "relation") return type;
  throw invalid(`${what} takes an entity or a relation: the definition, not its name; got ${quote(type)}`);
}

/** Where a relation is; without instances, `instance` is empty. */
export type RelationKey = { readonly from: string; readonly to: string; readonly instance?: string };

/** What a document is; `Nothing` of a relation without a schema. */
export type Nothing = Record<string, never>;
type InputOf<Schema> = Schema extends StandardSchemaV1 ? StandardSchemaV1.InferInput<Schema> : Nothing;
type OutputOf<Schema> = Schema extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<Schema> : Nothing;
type ValueOf<Type> = Type extends Entity<unknown, infer Value> ? Value : unknown;

export type DefinedRelation<From, To, Schema> = Relation<ValueOf<From>, ValueOf<To>, InputOf<Schema>, OutputOf<Schema>>;

export function defineRelation<
  From extends AnyEntity,
  To extends AnyEntity,
  Schema extends StandardSchemaV1 = StandardSchemaV1<Nothing, Nothing>,
>(name: string, options: RelationOptions<From, To, Schema>): DefinedRelation<From, To, Schema> {
  checkTypeName(name, "relation");
  const what = `relation "${name}"`;
  refuseUnknown(options, ["from", "to", "schema", "instanceKey", "indexes"], what);
  for (const side of ["from", "to"] as const) {
    if (options[side]?.kind !== "entity") throw invalid(`${what} has no "${side}": give an entity`);
  }
  if (options.schema !== undefined) checkSchema(options.schema, what);
  const instanceKey: unknown = options.instanceKey;
  if (instanceKey !== undefined && options.schema === undefined) {
    throw invalid(`${what} has an instanceKey but no schema to take it from`);
  }
  return {
    kind: "relation",
    name,
    from: options.from,
    to: options.to,
    schema: options.schema,
    instanceOf: instanceKey === undefined ? undefined : keyReader(instanceKey, what, "instanceKey"),
    instanceField: typeof instanceKey === "string" ? instanceKey : null,
    indexes: checkIndexes(options.indexes ?? [], name),
    search: [],
  };
}
