// records patch, link, unlink and restore: changes of one record that is there, or of what connects two.
import type { Written } from "../../index.ts";
import type { Book } from "../../book/book.ts";
import type { AnyRecordType, AnyRelation } from "../../records/define/definition.ts";
import { invalid } from "../../core/error.ts";
import { isObject } from "../../core/json.ts";
import { quote } from "../../core/quote.ts";
import { json, list, maybe, text } from "../field.ts";
import { operate } from "../verb.ts";
import { ifRevision, key, moment, notes, readKey, readMoment, type } from "./record-field.ts";
import { keyText } from "./record-view.ts";

/** Definitions of the user's own files, which check what is written. */
const defined = {
  definitions: "must",
  definitionKind: "record",
  definitionsOf: ({ type: name }: { readonly type: string }) => [name],
} as const;

export const change = {
  patch: operate({
    ...defined,
    words: "records patch <type> <key...>",
    about: "replace fields of a record, and leave the others as they are",
    more: "The definition is needed, because its schema checks the document.",
    input: {
      type,
      key,
      fields: maybe(json("the fields as a JSON object")),
      removed: maybe(list(text("a field to remove; may be given several times", "name"), { one: "remove" })),
      ifRevision,
      ...notes,
    },
    examples: [`records patch order o-17 --fields '{"status":"paid"}' --from ./records.ts`],
    check({ fields, removed }) {
      if (fields === undefined && removed === undefined) throw invalid("nothing to change: give fields or remove");
      if (fields !== undefined && !isObject(fields)) throw invalid(`fields is ${quote(fields)}: give a JSON object`);
    },
    async run(book, { type: name, key: parts, fields = {}, removed = [], ...options }): Promise<Written> {
      const of = await definedHere(book, name);
      const gone = Object.fromEntries(removed.map((each) => [each, undefined]));
      return book.records.patch(of, readKey(of, parts) as never, { ...(fields as object), ...gone } as never, options);
    },
    show: written,
  }),

  link: operate({
    ...defined,
    words: "records link <type> <from> <to> [document]",
    about: "connect two entities that are there",
    more: "The definition is needed, because its schema checks the document.",
    input: {
      type: text("the name of the relation", "name"),
      from: text("the key of the entity where it begins", "key"),
      to: text("the key of the entity where it ends", "key"),
      document: maybe(json("the document as JSON (default: {})")),
      ifRevision,
      ...notes,
    },
    examples: [`records link placed ada o-17 '{"at":1}' --from ./records.ts`],
    async run(book, { type: name, from, to, document = {}, ...options }): Promise<Written> {
      const of = checkRelation(await definedHere(book, name));
      return book.records.link(of, { from, to }, document as never, options);
    },
    show: written,
  }),

  unlink: operate({
    words: "records unlink <type> <key...>",
    about: "end a relation; what was known of it stays known",
    input: { type: text("the name of the relation", "name"), key, ifRevision, ...notes },
    examples: ["records unlink placed ada o-17"],
    async run(book, { type: name, key: parts, ...options }) {
      const of = checkRelation(await book.records.type(name));
      return { unlinked: await book.records.unlink(of, readKey(of, parts) as never, options) };
    },
    show: ({ unlinked }, { type: name, key: parts }) =>
      unlinked ? `${name} ${parts.join(" → ")} is unlinked` : "There was no such relation.",
  }),

  restore: operate({
    words: "records restore <type> <key...>",
    definitions: "may",
    definitionKind: "record",
    about: "write a record as it was, as a new version",
    more: "With a definition, its schema checks the document first.",
    input: { type, key, to: moment("what to go back to: a commit (its number) or a time"), ifRevision, ...notes },
    examples: ["records restore order o-17 --to 16 --reason 'a slip'"],
    async run(book, { type: name, key: parts, to, ...options }): Promise<Written> {
      const of = (await definitionsOf(book)).get(name) ?? (await book.records.type(name));
      return book.records.restore(of, readKey(of, parts) as never, readMoment(to), options);
    },
    show: written,
  }),
};

/** The definition of this name that this process was given. */
export async function definedHere(book: Book, name: string): Promise<AnyRecordType> {
  const of = (await definitionsOf(book)).get(name);
  if (of === undefined) throw invalid(`${quote(name)} is no type of record that is defined here`);
  return of;
}

// Loaded when it is needed: to list commands takes none of the book.
async function definitionsOf(book: Book): Promise<ReadonlyMap<string, AnyRecordType>> {
  const { roomsOf } = await import("../../open/rooms.ts");
  return roomsOf(book).records.definitions;
}

function checkRelation(of: AnyRecordType): AnyRelation {
  if (of.kind === "relation") return of;
  throw invalid(`${quote(of.name)} is an entity: only relations are linked and unlinked`);
}

function written({ key: of, revision, changed }: Written, { type: name }: { readonly type: string }): string {
  return `${name} ${keyText(of)} is at revision ${revision}${changed ? "" : ", as it was"}`;
}
