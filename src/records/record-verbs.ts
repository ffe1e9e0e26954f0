// The verbs that write records, the same on the book and in a transaction. On the book each is a commit of its own.
import { invalid, itemOf } from "../core/error.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { addNotes, noteNames, type CommitNotes } from "./commit.ts";
import type { AnyEntity, AnyRecordType, AnyRelation, Entity, Relation, RelationKey } from "./define/definition.ts";
import { checkDocument, keyOfDocument, recordKey } from "./define/record-key.ts";
import { readRow, type KeyOf, type ValueOf } from "./entry.ts";
import { momentOf, type AsOf } from "./moment.ts";
import { txReader } from "./record-reader.ts";
import { checkWriteOptions, type WriteOptions } from "./write/precondition.ts";
import type { RecordUnit } from "./write/record-unit.ts";
import { ensure, link, noRecord, patch, put, remove, writeAgain } from "./write/write.ts";
import type { DeleteOptions, Written } from "./write/write.ts";

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

/** How a verb reaches a unit: that of its transaction, or one of its own. `alone`: no other write may run meanwhile, not even of
 *  other keys; otherwise, the record that it writes. */
export type WithinUnit = <T>(work: (unit: RecordUnit) => Promise<T>, how: How) => Promise<T>;

type How = { readonly alone: true } | { readonly type: AnyEntity; readonly key: string };

const alone = { alone: true } as const;

export function recordVerbs(within: WithinUnit): RecordVerbs {
  const keyed = (type: AnyEntity, key: string, options: WriteOptions): How =>
    "ifRevision" in options || "ifAbsent" in options || "ifHead" in options ? alone : { type, key };
  return {
    async put(type: AnyEntity, value: unknown, options: WriteOptions = {}) {
      checkKind(type, "entity", "put");
      checkWriteOptions(options, "put");
      const document = await checkDocument(type, value);
      const { key } = keyOfDocument(type, document);
      return within((unit) => put(unit, type, document, options), keyed(type, key, options));
    },
    async putMany(type: AnyEntity, values: readonly unknown[], options: WriteOptions = {}) {
      checkKind(type, "entity", "putMany");
      refuseUnknown(options, [...noteNames, "ifHead"], "putMany");
      if (!Array.isArray(values)) throw invalid("putMany takes a list of documents");
      const documents = await Promise.all(
        values.map((value, index) => checkDocument(type, value).catch(itemOf("document", index))),
      );
      const keys = documents.map((document) => keyOfDocument(type, document).key);
      return within(async (unit) => {
        await unit.prefetch(await unit.typeOf(type), keys);
        const made: Written[] = [];
        for (const document of documents) made.push(await put(unit, type, document, options));
        return made;
      }, alone);
    },
    async ensure(type: AnyEntity, value: unknown, options: WriteOptions = {}) {
      checkKind(type, "entity", "ensure");
      checkWriteOptions(options, "ensure");
      const document = await checkDocument(type, value);
      const { key } = keyOfDocument(type, document);
      return within((unit) => ensure(unit, type, document, options), keyed(type, key, options));
    },
    async patch(type: AnyRecordType, key: string | RelationKey, fields: object, options: WriteOptions = {}) {
      checkWriteOptions(options, "patch");
      recordKey(type, key);
      const how = type.kind === "entity" && typeof key === "string" ? keyed(type, key, options) : alone;
      return within((unit) => patch(unit, type, key, fields, options), how);
    },
    async delete(type: AnyRecordType, key: string | RelationKey, options: DeleteOptions = {}) {
      checkWriteOptions(options, "delete", ["unlink"]);
      recordKey(type, key);
      return within((unit) => remove(unit, type, key, options), alone);
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
      return within((unit) => link(unit, type, ends, document, options), alone);
    },
    async unlink(type, key, options = {}) {
      checkKind(type, "relation", "unlink");
      checkWriteOptions(options, "unlink");
      recordKey(type, key);
      return within((unit) => remove(unit, type, key, options), alone);
    },
    async restore(type: AnyRecordType, key: string | RelationKey, asOf: AsOf, options: WriteOptions = {}) {
      checkWriteOptions(options, "restore");
      const at = recordKey(type, key);
      return within(async (unit) => {
        const reader = txReader(unit.tx);
        const row = await readRow(reader, type.name, at, (await momentOf(reader, asOf)) ?? 0);
        if (row === undefined) throw noRecord(type.name, at);
        return writeAgain(unit, type, at, row.body, options);
      }, alone);
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
