// The types of records as code defines them. An entity stands for itself and is found by its key. A relation connects two
// entities; it is found by them and, where several may connect the same two, by an instance key.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { invalid } from "../../core/error.ts";
import { isObject } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { checkName } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { isSchema } from "../../core/standard-schema.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import type { StoredType } from "./record-type.ts";

type TextFields<Value> = keyof { [Name in keyof Value as Value[Name] extends string ? Name : never]: true } & string;

export type EntityOptions<Schema extends StandardSchemaV1> = {
  /** Checks and types the documents. Any Standard Schema: zod, valibot, arktype … */
  readonly schema: Schema;
  /** The field that holds the key, or a function that makes it from the document. */
  readonly key:
    | TextFields<StandardSchemaV1.InferOutput<Schema>>
    | ((value: StandardSchemaV1.InferOutput<Schema>) => string);
  /** Fields that are searched often: `"status"`, `["address", "city"]`, `{ path: "total", temporal: true }`. */
  readonly indexes?: readonly IndexInput<StandardSchemaV1.InferOutput<Schema>>[];
  /** Fields of text whose words are found by `search`. */
  readonly search?: readonly SearchInput<StandardSchemaV1.InferOutput<Schema>>[];
};

type AnyDefinition = {
  readonly name: string;
  readonly indexes: readonly Index[];
  readonly search: readonly Path[];
  /** Set when the definition was made from what the book knows, not from code. */
  readonly stored?: StoredType;
};

/** An entity with documents of any type. */
export type AnyEntity = AnyDefinition & {
  readonly kind: "entity";
  readonly schema: StandardSchemaV1;
  readonly keyOf: (value: unknown) => unknown;
  /** The field that holds the key; null when a function makes it. */
  readonly keyField: string | null;
};

export type Entity<Input = unknown, Value = unknown> = AnyEntity & {
  /** For the compiler only; it does not exist at run time. */
  readonly "~types"?: { readonly input: Input; readonly value: Value };
};

export function defineEntity<Schema extends StandardSchemaV1>(
  name: string,
  options: EntityOptions<Schema>,
): Entity<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>> {
  checkTypeName(name, "entity");
  refuseUnknown(options, ["schema", "key", "indexes", "search"], `entity "${name}"`);
  checkSchema(options.schema, `entity "${name}"`);
  const key: unknown = options.key;
  return {
    kind: "entity",
    name,
    schema: options.schema,
    keyOf: keyReader(key, `entity "${name}"`, "key"),
    keyField: typeof key === "string" ? key : null,
    indexes: checkIndexes(options.indexes ?? [], name),
    search: (options.search ?? []).map((path) => checkPath(path, `search of "${name}"`)),
  };
}

/** Type names are part of event topics, so dots are refused. */
function checkTypeName(name: string, kind: string): void {
  checkName(name, `${kind} name`);
  if (/[.*>\s]/.test(name)) {
    throw invalid(`${kind} name ${JSON.stringify(name)} has a space or one of . * >: use letters, digits, - and _`);
  }
}

function checkSchema(schema: unknown, what: string): void {
  if (isSchema(schema)) return;
  throw invalid(`${what} has no schema: give a Standard Schema, such as z.object({ id: z.string() })`);
}

export function keyReader(key: unknown, what: string, option: string): (value: unknown) => unknown {
  if (typeof key === "function") return (value) => (key as (value: unknown) => unknown)(value);
  if (typeof key === "string" && key !== "") return (value) => follow(value, [key]);
  throw invalid(`${what} has no ${option}: name the field that holds it, or give a function`);
}

export type RelationOptions<From extends AnyEntity, To extends AnyEntity, Schema extends StandardSchemaV1> = {
  readonly from: From;
  readonly to: To;
  /** Checks and types the relation's own document. Without one, a relation has nothing but its endpoints. */
  readonly schema?: Schema;
  /** The field, or a function of the document, that tells relations between the same two entities apart. */
  readonly instanceKey?:
    | (keyof StandardSchemaV1.InferOutput<Schema> & string)
    | ((value: StandardSchemaV1.InferOutput<Schema>) => string);
  readonly indexes?: readonly IndexInput<StandardSchemaV1.InferOutput<Schema>>[];
};

export type AnyRelation = AnyDefinition & {
  readonly kind: "relation";
  readonly from: AnyEntity;
  readonly to: AnyEntity;
  readonly schema: StandardSchemaV1 | undefined;
  readonly instanceOf: ((value: unknown) => unknown) | undefined;
  readonly instanceField: string | null;
};

export type Relation<From = unknown, To = unknown, Input = unknown, Value = unknown> = AnyRelation & {
  /** For the compiler only; it does not exist at run time. */
  readonly "~types"?: { readonly input: Input; readonly value: Value; readonly from: From; readonly to: To };
};

export type AnyRecordType = AnyEntity | AnyRelation;

/** Refuses a name where a definition is wanted. */
export function checkDefinition<Type extends AnyRecordType>(type: Type, what: string): Type {
  const { kind } = (type ?? {}) as { kind?: unknown };
  if (kind === "entity" || kind === "relation") return type;
  throw invalid(`${what} takes an entity or a relation: the definition, not its name; got ${quote(type)}`);
}

/** By what a relation is found; without instances, `instance` is empty. */
export type RelationKey = { readonly from: string; readonly to: string; readonly instance?: string };

/** The document of a relation without a schema. */
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

/** A path into a document: a list of names, taken literally. A dot, a quote or `__proto__` in a name is part of the name. */
export type Path = readonly string[];

export type Names<Value> = Value extends readonly unknown[]
  ? never
  : Value extends object
    ? keyof Value & string
    : never;

/** One name, or several from the outside in. */
export type PathInput<Value> = Names<Value> | readonly [Names<Value>, ...string[]];

/** Those that hold a text, or may hold one: a list has no words. */
type TextNames<Value> = {
  [Name in Names<Value>]: unknown extends Value[Name & keyof Value]
    ? Name
    : [Extract<Value[Name & keyof Value], string>] extends [never]
      ? never
      : Name;
}[Names<Value>];

/** The name of a field of text, or several names from the outside in. */
export type SearchInput<Value> =
  | TextNames<Value>
  | readonly [TextNames<Value>]
  | readonly [Names<Value>, string, ...string[]];

export type IndexInput<Value> =
  | PathInput<Value>
  | {
      readonly path: PathInput<Value>;
      /** Also for questions about the past (`asOf`). */
      readonly temporal?: boolean;
      /** For `any` over an array of texts, numbers or booleans. */
      readonly each?: boolean;
    };

export type Index = { readonly path: Path; readonly temporal: boolean; readonly each: boolean };

export function checkIndexes(inputs: readonly unknown[], type: string): readonly Index[] {
  return inputs.map((input) => {
    const what = `an index of "${type}"`;
    if (typeof input === "string" || Array.isArray(input)) {
      return { path: checkPath(input, what), temporal: false, each: false };
    }
    if (typeof input !== "object" || input === null) throw invalid(`${what} is ${quote(input)}: name a field`);
    refuseUnknown(input, ["path", "temporal", "each"], what);
    const { path, temporal, each } = input as { path?: unknown; temporal?: unknown; each?: unknown };
    if (temporal === true && each === true) throw invalid(`${what} is temporal and for each item: choose one`);
    return { path: checkPath(path, what), temporal: temporal === true, each: each === true };
  });
}

export function checkPath(input: unknown, what: string): Path {
  const path: unknown[] = Array.isArray(input) ? input : [input];
  if (path.length === 0) throw invalid(`${what} has an empty path: name a field`);
  return checkSegments(path, what);
}

/** Checks the names of a path. An empty path is the thing itself. */
export function checkSegments(path: readonly unknown[], what: string): Path {
  if (path.length > limits.pathSegmentsMax) {
    throw invalid(`${what} has a path of ${path.length} names: a document is at most ${limits.pathSegmentsMax} deep`);
  }
  return path.map((segment) => {
    if (typeof segment !== "string") throw invalid(`${what} has ${quote(segment)} in its path, which is no text`);
    if (!segment.isWellFormed() || segment.includes("\0")) {
      throw invalid(`${what} has a lone surrogate or U+0000 in its path: no document has such a field`);
    }
    if (Buffer.byteLength(segment) > limits.keyBytesMax) {
      throw invalid(`${what} has a name of more than ${limits.keyBytesMax} bytes in its path`);
    }
    return segment;
  });
}

export function samePath(one: Path, other: Path): boolean {
  return one.length === other.length && one.every((segment, index) => segment === other[index]);
}

/** The value at a path of a document. Arrays have no names. */
export function follow(value: unknown, path: Path): unknown {
  let at = value;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}
