// The verbs that write records, the same on the book and in a transaction. On the book each is a commit of its own.
import { invalid } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { addNotes, noteNames, type AsOf, type CommitNotes } from "./commit.ts";
import type { AnyEntity, AnyRecordType, AnyRelation, Entity, Relation, RelationKey } from "./define/definition.ts";
import { checkDocument, checkDocuments, keyOf, recordKey, type RecordKey } from "./define/record-key.ts";
import type { KeyOf, ValueOf } from "./entry.ts";
import type { RecordUnit } from "./write/record-unit.ts";
import { checkWriteOptions, ensure, patch, put, putMany, remove, restore } from "./write/write.ts";
import type { DeleteOptions, WriteOptions, Written } from "./write/write.ts";

export type RecordVerbs = {
  /** Writes a document under its key, as a new version whether or not it is the same.
   *
   *  ```ts
   *  const Note = entity("note", { schema: z.object({ id: z.string(), body: z.string() }), key: "id" });
   *  await book.records.put(Note, { id: "n-1", body: "milk" }, { actor: "ada", reason: "shopping" });
   *  ``` */
  put<Input, Value>(type: Entity<Input, Value>, value: NoInfer<Input>, options?: WriteOptions): Promise<Written>;
  /** Many documents in one commit. */
  putMany<Input, Value>(
    type: Entity<Input, Value>,
    values: readonly NoInfer<Input>[],
    options?: CommitNotes & Pick<WriteOptions, "ifHead">,
  ): Promise<Written[]>;
  /** Like `put`, but a document that is the same already makes no version and no commit. */
  ensure<Input, Value>(type: Entity<Input, Value>, value: NoInfer<Input>, options?: WriteOptions): Promise<Written>;
  /** Lays fields over a record that exists; a field that is given as undefined is removed. */
  patch<Type extends AnyRecordType>(
    type: Type,
    key: KeyOf<Type>,
    fields: Partial<ValueOf<NoInfer<Type>>>,
    options?: WriteOptions,
  ): Promise<Written>;
  /** Resolves to whether there was something to delete. The past of the record stays. */
  delete<Type extends AnyRecordType>(type: Type, key: KeyOf<Type>, options?: DeleteOptions): Promise<boolean>;
  /** Connects two entities that exist. */
  link<From, To, Input, Value>(
    type: Relation<From, To, Input, Value>,
    ends: { readonly from: string; readonly to: string },
    ...rest: Record<never, never> extends NoInfer<Input>
      ? [value?: NoInfer<Input>, options?: WriteOptions]
      : [value: NoInfer<Input>, options?: WriteOptions]
  ): Promise<Written>;
  unlink(type: AnyRelation, key: RelationKey, options?: WriteOptions): Promise<boolean>;
  /** Writes the document of a past moment again, as a new version. */
  restore<Type extends AnyRecordType>(
    type: Type,
    key: KeyOf<Type>,
    asOf: AsOf,
    options?: WriteOptions,
  ): Promise<Written>;
};

/** The verbs of a transaction, whose writes are one commit. */
export type TxRecordVerbs = RecordVerbs & {
  /** Notes who makes the commit of this transaction, and why. */
  annotate(notes: CommitNotes): Promise<void>;
};

/** How a verb reaches a unit: that of its transaction, or one of its own. A verb that writes one record names it; then writes of
 *  other records may share the transaction. Otherwise no other write runs meanwhile. */
export type WithinUnit = <T>(work: (unit: RecordUnit) => Promise<T>, record?: OneRecord) => Promise<T>;

export type OneRecord = { readonly type: AnyEntity; readonly key: string };

export function recordVerbs(within: WithinUnit): RecordVerbs {
  /** Calls `within` with the record that the verb writes, unless the write has conditions or is about a relation. */
  function withinOne<T>(
    type: AnyRecordType,
    { key }: RecordKey,
    options: WriteOptions,
    work: (unit: RecordUnit) => Promise<T>,
  ): Promise<T> {
    const isConditional = "ifRevision" in options || "ifAbsent" in options || "ifHead" in options;
    return type.kind === "relation" || isConditional ? within(work) : within(work, { type, key });
  }
  const putBy =
    (verb: string, write: typeof ensure) =>
    async (type: AnyEntity, value: unknown, options: WriteOptions = {}) => {
      checkKind(type, "entity", verb);
      checkWriteOptions(options, verb);
      const document = await checkDocument(type, value);
      const at = keyOf(type, document, null);
      return withinOne(type, at, options, (unit) => write(unit, type, at, document, options));
    };
  async function removeBy(verb: string, type: AnyRecordType, key: string | RelationKey, options: DeleteOptions) {
    checkWriteOptions(options, verb, verb === "delete" ? ["unlink"] : []);
    const at = recordKey(type, key);
    return within((unit) => remove(unit, type, at, options));
  }
  return {
    put: putBy("put", put),
    ensure: putBy("ensure", ensure),
    async putMany(type: AnyEntity, values: readonly unknown[], options: WriteOptions = {}) {
      checkKind(type, "entity", "putMany");
      refuseUnknown(options, [...noteNames, "ifHead"], "putMany");
      if (!Array.isArray(values)) throw invalid("putMany takes a list of documents");
      const documents = await checkDocuments(type, values);
      const places = documents.map((document) => ({ document, at: keyOf(type, document, null) }));
      return within((unit) => putMany(unit, type, places, options));
    },
    async patch(type: AnyRecordType, key: string | RelationKey, fields: object, options: WriteOptions = {}) {
      checkWriteOptions(options, "patch");
      const at = recordKey(type, key);
      return withinOne(type, at, options, (unit) => patch(unit, type, at, fields, options));
    },
    async link(
      type: AnyRelation,
      ends: { readonly from: string; readonly to: string },
      value: unknown = {},
      options: WriteOptions = {},
    ) {
      checkKind(type, "relation", "link");
      checkWriteOptions(options, "link");
      refuseUnknown(ends, ["from", "to"], "the endpoints of a link");
      const document = await checkDocument(type, value);
      const at = keyOf(type, document, ends);
      return within((unit) => put(unit, type, at, document, options));
    },
    delete: (type, key, options = {}) => removeBy("delete", type, key, options),
    async unlink(type, key, options = {}) {
      checkKind(type, "relation", "unlink");
      return removeBy("unlink", type, key, options);
    },
    async restore(type: AnyRecordType, key: string | RelationKey, asOf: AsOf, options: WriteOptions = {}) {
      checkWriteOptions(options, "restore");
      const at = recordKey(type, key);
      return within((unit) => restore(unit, type, at, asOf, options));
    },
  };
}

export async function annotateCommit(unit: RecordUnit, notes: CommitNotes): Promise<void> {
  refuseUnknown(notes, noteNames, "describe");
  unit.notes = addNotes(unit.notes, notes);
}

function checkKind(type: AnyRecordType, kind: AnyRecordType["kind"], verb: string): void {
  if (type?.kind === kind) return;
  throw invalid(`${verb} takes ${kind === "entity" ? "an entity" : "a relation"} first: the definition, not its name`);
}
