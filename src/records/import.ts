// Reads the lines that export wrote, and writes what they say.
import { conflict, DaybookError, invalid, notFound } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkWord, refuseUnknown } from "../core/suggest.ts";
import { noteNames, readHead, type CommitNotes } from "./commit.ts";
import type { AnyRecordType, RelationKey } from "./define/definition.ts";
import { checkDocument, keyOf, nameRecord, recordKey } from "./define/record-key.ts";
import type { Document, RecordKey } from "./define/record-key.ts";
import { storedDefinition } from "./define/record-type.ts";
import { readRow } from "./entry.ts";
import { importHistory } from "./import-history.ts";
import { readExport, type GivenLine } from "./read-export.ts";
import type { RecordReader } from "./record-reader.ts";
import { inSlices, pace } from "../storage/slices.ts";
import type { RecordRoom } from "./room.ts";
import type { RecordUnit } from "./write/record-unit.ts";
import { checkHead, put } from "./write/write.ts";

export type ImportOptions = CommitNotes & {
  /** What to do when the book holds another document under the key: import nothing (`abort`, the default), keep that document
   *  (`skip`), or write a new version (`upsert`). */
  readonly onConflict?: "abort" | "skip" | "upsert";
  /** Only tells what the import would do. */
  readonly dryRun?: boolean;
  /** Imports only if this is still the last commit. */
  readonly ifHead?: number | null;
  /** Takes an export that has no trailer, or not the one of its lines: one that was cut off, edited, or made by an older version. */
  readonly allowTruncated?: boolean;
};

type Doing = "created" | "updated" | "deleted" | "unchanged" | "skipped";

export type Imported = Readonly<Record<Doing, number>> & { readonly commits: number; readonly dryRun: boolean };

type Line = {
  readonly number: number;
  readonly type: AnyRecordType;
  readonly at: RecordKey;
  readonly document: Document;
};

type Todo = { readonly line: Line; readonly what: Doing };

type ImportParts = {
  readonly reader: RecordReader;
  readonly room: RecordRoom;
  readonly commit: (work: (unit: RecordUnit) => Promise<void>) => Promise<void>;
};

/** Reads what export wrote. It checks everything before it writes anything, and then makes commits of some hundred records,
 *  entities before the relations that need them. */
export async function importRecords(
  { reader, room, commit }: ImportParts,
  source: AsyncIterable<string> | Iterable<string>,
  options: ImportOptions,
): Promise<Imported> {
  refuseUnknown(options, [...noteNames, "onConflict", "dryRun", "ifHead", "allowTruncated"], "import");
  const { onConflict = "abort", dryRun = false, ifHead, allowTruncated = false, ...notes } = options;
  checkWord(onConflict, ["abort", "skip", "upsert"], "onConflict");
  const given = await readExport(source, allowTruncated);
  if (given.history) return importHistory(reader, room, given.lines, options);
  const lines = await toLines(reader, room.definitions, given.lines);
  // Checked for a dry run too, and when there is nothing to do. The first commit checks again, against writers in between.
  if (ifHead !== undefined) checkHead((await readHead(reader)).commit, ifHead);
  await checkEnds(reader, lines);
  const counts: Record<Doing, number> = { created: 0, updated: 0, deleted: 0, unchanged: 0, skipped: 0 };
  const todo: Todo[] = [];
  const turn = pace();
  for (const line of lines) {
    const found = await readRow(reader, line.type.name, line.at, null);
    const same = found !== undefined && toJson(JSON.parse(found.body)) === line.document.body;
    const what = found === undefined ? "created" : same ? "unchanged" : onConflict === "skip" ? "skipped" : "updated";
    counts[what]++;
    if (what === "created" || what === "updated") todo.push({ line, what });
    await turn(line.document.body);
  }
  if (onConflict === "abort" && counts.updated > 0) {
    throw taken(todo.filter(({ what }) => what === "updated").map(({ line }) => nameRecord(line.type.name, line.at)));
  }
  let commits = 0;
  const write = async (some: readonly Todo[]): Promise<void> => {
    await commit(async (unit) => {
      for (const { line, what } of some) {
        // A record that another writer made in between is not overwritten, unless the caller asked for that.
        const still = what === "created" && onConflict !== "upsert" ? { ifAbsent: true } : {};
        const head = commits === 0 && ifHead !== undefined ? { ifHead } : {};
        await put(unit, line.type, line.at, line.document, { ...notes, ...still, ...head });
      }
    });
    commits++;
  };
  if (!dryRun) await inSlices(todo, write, ({ line }) => line.document.body.length);
  return { ...counts, commits, dryRun };
}

async function toLines(
  reader: RecordReader,
  definitions: ReadonlyMap<string, AnyRecordType>,
  given: readonly GivenLine[],
): Promise<Line[]> {
  const types = new Map<string, AnyRecordType>(definitions);
  const lines = new Map<string, Line>();
  const turn = pace();
  for (const { number, line } of given) {
    const { type: name, key, value } = line;
    if (typeof name !== "string")
      throw invalid(`line ${number} has no type: { "type": "order", "key": "o-17", "value": { … } }`);
    let type = types.get(name);
    if (type === undefined) types.set(name, (type = await storedDefinition(reader, name)));
    const next = await toLine(type, key as string | RelationKey, value, number);
    const first = lines.get(placeOf(next));
    if (first !== undefined) {
      throw invalid(
        `line ${number} is about ${nameRecord(name, next.at)}, and so is line ${first.number}: keep one of them`,
      );
    }
    lines.set(placeOf(next), next);
    await turn(next.document.body);
  }
  // Whatever their order in the file: entities before the relations that need them.
  return [...lines.values()].toSorted(
    (one, other) => Number(one.type.kind === "relation") - Number(other.type.kind === "relation"),
  );
}

/** Refuses a relation whose endpoint is neither in the file nor in the book, before anything is written. */
async function checkEnds(reader: RecordReader, lines: readonly Line[]): Promise<void> {
  const coming = new Set(lines.map(placeOf));
  const turn = pace();
  for (const { type, at, number } of lines) {
    if (type.kind === "entity" || at.ends === null) continue;
    await turn("");
    for (const side of ["from", "to"] as const) {
      const end = { type: type[side], at: { key: at.ends[side], ends: null } };
      if (coming.has(placeOf(end)) || (await readRow(reader, end.type.name, end.at, null)) !== undefined) continue;
      const what = `line ${number}: ${nameRecord(type.name, at)} needs its ${nameRecord(end.type.name, end.at)}`;
      throw notFound(`${what}, which is neither in the file nor in the book`, { line: number });
    }
  }
}

function placeOf({ type, at }: Pick<Line, "type" | "at">): string {
  return `${type.name}\n${at.key}`;
}

async function toLine(type: AnyRecordType, key: string | RelationKey, value: unknown, number: number): Promise<Line> {
  try {
    const at = recordKey(type, key);
    const document = await checkDocument(type, value);
    // A stored type whose key is made by a function cannot tell the key from the document.
    const own = type.kind === "entity" && type.keyField === null ? at : keyOf(type, document, at.ends);
    if (own.key !== at.key)
      throw invalid(`its key is ${JSON.stringify(key)}, but the document says ${JSON.stringify(own.ends ?? own.key)}`);
    return { number, type, at, document };
  } catch (error) {
    const cause = error as DaybookError;
    throw new DaybookError(cause.code ?? "invalid", `line ${number}: ${cause.message}`, {
      cause,
      details: { line: number },
    });
  }
}

function taken(names: readonly string[]): DaybookError {
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return conflict(
    `${names.slice(0, 3).join(", ")}${more} hold something else: import with onConflict "skip" or "upsert", or a dry run first`,
    { conflicts: names.slice(0, limits.pageDefault), count: names.length },
  );
}
