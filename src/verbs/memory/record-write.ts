// records put, delete, export and import: what changes records, and what carries them from book to book.
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Imported, Written } from "../../index.ts";
import { DaybookError, invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { flag, json, list, maybe, text, whole, word } from "../field.ts";
import { rehearsing } from "../shared-fields.ts";
import { asOf, ifRevision, key, notes, readKey, readMoment, type } from "./record-field.ts";
import { keyText } from "./record-view.ts";
import { count } from "../shown.ts";
import { operate, read } from "../verb.ts";

export const write = {
  put: operate({
    words: "records put <type> <document>",
    http: "PUT /records/{type}",
    definitions: "must",
    definitionKind: "record",
    definitionsOf: ({ type: name }) => [name],
    about: "write a record, as a new version",
    more: "The definition is needed, because its schema checks the document.",
    input: {
      type: text("the name of the entity", "name"),
      document: json("the document as JSON"),
      ifRevision,
      ...notes,
    },
    examples: [`records put order '{"id":"o-17","total":40}' --from ./records.ts --actor ada`],
    async run(book, { type: name, document, ...options }): Promise<Written> {
      const { roomsOf } = await import("../../open/rooms.ts");
      const defined = roomsOf(book).records.definitions.get(name);
      if (defined?.kind !== "entity") {
        throw invalid(
          `${quote(name)} is no entity that is defined here: put writes entities, and links are made by code`,
        );
      }
      return book.records.put(defined, document, options);
    },
    show: ({ key: of, revision, changed }, { type: name }) =>
      `${name} ${keyText(of)} is at revision ${revision}${changed ? "" : ", as it was"}`,
  }),

  delete: operate({
    words: "records delete <type> <key...>",
    about: "delete a record; what was known of it stays known",
    input: { type, key, ifRevision, unlink: maybe(flag("unlink what connects it with others, too")), ...notes },
    examples: ["records delete order o-17 --unlink --reason duplicate"],
    async run(book, { type: name, key: words, ...options }) {
      const of = await book.records.type(name);
      return { deleted: await book.records.delete(of, readKey(of, words) as never, options) };
    },
    show: ({ deleted }, { type: name, key: words }) =>
      deleted ? `${name} ${words.join(" → ")} is deleted` : "There was no such record.",
  }),

  export: read({
    words: "records export <file>",
    local: true,
    about: "write records into a file, one line of JSON each",
    more: `The last line tells a whole file from one that was cut off. With --history it has every commit with
its changes, which an import writes anew with their numbers, times and actors.`,
    input: {
      file: text("the file to write", "file", 4096),
      types: maybe(
        list(text("only this type, and the entities that it connects; may be given several times", "name"), {
          one: "type",
        }),
      ),
      asOf,
      history: maybe(flag("every commit with its changes, instead of the records of one moment")),
    },
    examples: ["records export orders.jsonl --type order", "records export past.jsonl --history"],
    async run(book, { file, types, asOf: then, history = false }) {
      const only =
        types === undefined ? {} : { types: await Promise.all(types.map((each) => book.records.type(each))) };
      const moment = then === undefined ? {} : { asOf: readMoment(then) };
      const source = book.records.export({ ...only, ...moment, ...(history ? { history } : {}) });
      const { lines, changes } = await writeLines(file, source);
      // The first line says what the file is, and the last one that it is whole.
      const between = lines - 2;
      return { file, records: history ? changes : between, commits: history ? between - changes : null };
    },
    show({ file, records, commits }) {
      const what =
        commits === null ? count(records, "record") : `${count(records, "change")} of ${count(commits, "commit")}`;
      return `${what} ${records === 1 ? "is" : "are"} in ${file}`;
    },
  }),

  import: operate({
    words: "records import <file>",
    local: true,
    definitions: "may",
    definitionKind: "record",
    about: "read records from a file that export wrote",
    more: `Everything is looked at before anything is written. Without a definition, only types that the book
knows can be read, and their documents are not checked by a schema.`,
    input: {
      file: text("the file to read", "file", 4096),
      onConflict: maybe(word("where the book holds another document (default: abort)", ["abort", "skip", "upsert"])),
      ifHead: maybe(whole("only if this is still the last commit", 1, 1_000_000_000_000)),
      allowTruncated: maybe(flag("take a file whose last line is missing or does not fit the others")),
      ...rehearsing,
      ...notes,
    },
    examples: ["records import orders.jsonl --from ./records.ts --dry-run"],
    async run(book, { file, ...options }): Promise<Imported> {
      await using opened = await openFile(file);
      return await book.records.import(opened.readLines({ encoding: "utf8" }), options);
    },
    show({ created, updated, deleted, skipped, unchanged, dryRun }) {
      const gone = deleted > 0 ? ` ${deleted} deleted,` : "";
      const done = `${created} created, ${updated} updated,${gone} ${skipped} skipped, ${unchanged} unchanged`;
      return dryRun ? `Nothing was written. It would be: ${done}` : done;
    },
  }),
};

async function writeLines(file: string, source: AsyncIterable<string>): Promise<{ lines: number; changes: number }> {
  let [lines, changes] = [0, 0];
  async function* counted(): AsyncGenerator<string> {
    for await (const line of source) {
      lines++;
      if (line.startsWith('{"change":')) changes++;
      yield `${line}\n`;
    }
  }
  const target = createWriteStream(file);
  await once(target, "open").catch((cause: unknown) => {
    throw invalid(`${quote(file)} cannot be written: ${codeOf(cause)}`, { cause });
  });
  await pipeline(Readable.from(counted()), target);
  return { lines, changes };
}

async function openFile(path: string): Promise<FileHandle> {
  const opened = await open(path).catch((cause: unknown) => {
    const code = codeOf(cause);
    if (code === "ENOENT") throw new DaybookError("not_found", `there is no file ${quote(path)}`, { cause });
    throw invalid(`${quote(path)} cannot be read: ${code}`, { cause });
  });
  if (!(await opened.stat()).isDirectory()) return opened;
  await opened.close();
  throw invalid(`${quote(path)} is a folder: name the file that export wrote`);
}

function codeOf(error: unknown): string {
  return Error.isError(error) && "code" in error ? String(error.code) : String(error);
}
