// daybook records put, delete, export and import.
import { createReadStream, createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Command } from "commander";
import { DaybookError, invalid } from "../../core/error.ts";
import { parseJson } from "../../core/json.ts";
import { quote } from "../../core/quote.ts";
import type { AnyRecordType, RelationKey } from "../../records/define/definition.ts";
import { readKey, readMoment, showKey } from "../record-words.ts";
import { wholeNumber } from "../whole-number.ts";
import { changing, looking, withBook, type Access } from "../with-book.ts";

type Notes = { readonly actor?: string; readonly reason?: string; readonly ifRevision?: number };

const putExample = `
The definition is needed, because its schema checks the document.

Example:
  $ daybook records put --book shop.db --from ./records.ts order '{"id":"o-17","total":40}' --actor ada`;

const importExample = `
Everything is looked at before anything is written. Without --from, only types that the book
knows can be read, and their documents are not checked by a schema.

Example:
  $ daybook records import --book copy.db orders.jsonl --from ./records.ts --dry-run`;

export function changeRecords(group: Command): void {
  const put = noted(group.command("put").description("write a record, as a new version"))
    .argument("<type>", "the name of the entity")
    .argument("<document>", "the document, in JSON")
    .requiredOption("--from <module>", "the file that exports its definition, TypeScript or JavaScript")
    .option("--if-revision <n>", "only if this is still its revision", wholeNumber("--if-revision"))
    .addHelpText("after", putExample);
  put.action(async (name: string, text: string, { from, ...notes }: Notes & { from: string }) => {
    const use = await recordTypesOf(from);
    const type = use.find((each) => each.name === name);
    if (type?.kind !== "entity") throw invalid(`${from} exports no entity "${name}"`);
    await withBook(put, { ...changing, use }, async (book) => {
      const made = await book.records.put(type, parseJson(text, { what: "the document" }), notes);
      return { json: made, text: () => `${name} ${showKey(made.key)} is at revision ${made.revision}.` };
    });
  });
  const remove = noted(group.command("delete").description("delete a record; what was known of it stays known"))
    .argument("<type>", "the name of the type")
    .argument("<key...>", "its key; of a relation: from, to and, if it has one, its instance")
    .option("--if-revision <n>", "only if this is still its revision", wholeNumber("--if-revision"))
    .option("--unlink", "unlink what connects it with others, too");
  remove.action((name: string, words: string[], options: Notes & { unlink?: true }) =>
    withBook(remove, changing, async (book) => {
      const type: AnyRecordType = await book.records.type(name);
      const key: string | RelationKey = readKey(type, words);
      const deleted = await book.records.delete(type, key, options);
      return {
        json: { deleted },
        text: () => (deleted ? `${name} ${showKey(key)} is deleted.` : "There was no such record."),
      };
    }),
  );
  moveRecords(group);
}

function moveRecords(group: Command): void {
  const out = group
    .command("export")
    .description("write records into a file, one line of JSON each")
    .argument("<file>", "the file to write")
    .option("--type <name...>", "only these types, and the entities that they connect")
    .option("--as-of <moment>", "as it was known at a commit (its number) or a time");
  out.action((file: string, { type, asOf }: { type?: string[]; asOf?: string }) =>
    withBook(out, looking, async (book) => {
      const types = type === undefined ? {} : { types: await Promise.all(type.map((each) => book.records.type(each))) };
      let lines = 0;
      const source = book.records.export({ ...types, ...(asOf === undefined ? {} : { asOf: readMoment(asOf) }) });
      async function* text(): AsyncGenerator<string> {
        for await (const line of source) {
          lines++;
          yield `${line}\n`;
        }
      }
      await pipeline(Readable.from(text()), createWriteStream(file));
      return { json: { file, records: lines - 1 }, text: () => `${lines - 1} records are in ${file}.` };
    }),
  );
  const into = noted(group.command("import").description("read records from a file that export wrote"))
    .argument("<file>", "the file to read")
    .option("--on-conflict <how>", "where the book holds another document: abort, skip or upsert", "abort")
    .option("--if-head <n>", "only if this is still the last commit", wholeNumber("--if-head"))
    .option("--dry-run", "only say what would be done")
    .option("--from <module>", "the file that exports the definitions, TypeScript or JavaScript")
    .addHelpText("after", importExample);
  into.action(async (file: string, { from, onConflict, ...rest }: { from?: string; onConflict: string } & Notes) => {
    const access: Access = { ...changing, use: from === undefined ? [] : await recordTypesOf(from) };
    await withBook(into, access, async (book) => {
      const lines = createInterface({ input: await openFile(file) });
      const done = await book.records.import(lines, { ...rest, onConflict: onConflict as "abort" });
      const words = `${done.created} created, ${done.updated} updated, ${done.skipped} skipped, ${done.unchanged} unchanged`;
      return { json: done, text: () => (done.dryRun ? `Nothing was written. It would be: ${words}.` : `${words}.`) };
    });
  });
}

function noted(command: Command): Command {
  return command.option("--actor <who>", "who makes the commit").option("--reason <why>", "why it is made");
}

async function recordTypesOf(path: string): Promise<AnyRecordType[]> {
  const { loadDefinitions } = await import("../load-definitions.ts");
  return (await loadDefinitions({ module: path })).use.filter(
    (each) => each.kind === "entity" || each.kind === "relation",
  );
}

async function openFile(path: string): Promise<Readable> {
  const stream = createReadStream(path, "utf8");
  const opened = new Promise<void>((resolve, reject) => stream.once("open", () => resolve()).once("error", reject));
  try {
    await opened;
    return stream;
  } catch (cause) {
    const code: unknown = Error.isError(cause) ? Reflect.get(cause, "code") : undefined;
    if (code === "ENOENT") throw new DaybookError("not_found", `there is no file ${quote(path)}`, { cause });
    throw invalid(`${quote(path)} cannot be read: ${String(code)}`, { cause });
  }
}
