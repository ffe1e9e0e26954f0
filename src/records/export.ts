// Records as lines of JSON: a header, what there is, and a trailer, which tells a whole export from one that was cut off.
import { createHash } from "node:crypto";
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { pace } from "../storage/slices.ts";
import { limits } from "../core/limits.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { readSince, type ChangeRecord } from "./changes.ts";
import { momentOf, readCommits, readHead, type AsOf, type CommitRecord } from "./commit.ts";
import { checkDefinition, type AnyRecordType } from "./define/definition.ts";
import { listTypes } from "./define/record-type.ts";
import { readPage } from "./query/read-query.ts";
import type { RecordReader } from "./record-reader.ts";

export type ExportOptions = {
  /** Only these types; a relation brings the entities that it connects. */
  readonly types?: readonly AnyRecordType[];
  readonly asOf?: AsOf;
  /** Every commit with its changes, instead of the records of one moment. */
  readonly history?: boolean;
};

export const exportFormat = "daybook-records";
export const exportVersion = 2;

export async function* exportRecords(
  reader: RecordReader,
  options: ExportOptions,
): AsyncGenerator<string, void, undefined> {
  refuseUnknown(options, ["types", "asOf", "history"], "export");
  const { history = false } = options;
  if (history && options.types !== undefined) {
    throw invalid("a history is exported whole, because its commits are numbered without gaps: leave out types");
  }
  const wanted = options.types === undefined ? undefined : new Set(options.types.flatMap(namesOf));
  // All pages show one commit, however long the reader takes.
  const commit = (await momentOf(reader, options.asOf)) ?? (await readHead(reader)).commit ?? 0;
  const header = { format: exportFormat, version: exportVersion, commit };
  const hash = createHash("sha256");
  const put = (line: string): string => {
    hash.update(`${line}\n`);
    return line;
  };
  yield put(toJson(history ? { ...header, history } : header));
  let lines = 0;
  for await (const line of history ? pastLines(reader, commit) : recordLines(reader, commit, wanted)) {
    lines++;
    yield put(line);
  }
  yield toJson({ end: { lines, commit, hash: hash.digest("hex") } });
}

/** A line has room for the largest document, and for what is said about it. */
const wholeLine = { bytesMax: 2 * limits.jsonBytesMax } as const;

/** Entities before the relations that need them. */
async function* recordLines(
  reader: RecordReader,
  moment: number,
  wanted: ReadonlySet<string> | undefined,
): AsyncGenerator<string, void, undefined> {
  const turn = pace();
  const known = (await listTypes(reader)).filter((type) => wanted === undefined || wanted.has(type.name));
  for (const kind of ["entity", "relation"] as const) {
    for (const { name } of known.filter((type) => type.kind === kind)) {
      for (let after: string | undefined; ;) {
        const question = { name, type: undefined, where: [], orders: [], asOf: moment, limit: limits.pageMax };
        const page = await readPage(reader, after === undefined ? question : { ...question, after });
        for (const { key, value } of page.items) {
          const text = toJson({ type: name, key, value }, wholeLine);
          yield text;
          await turn(text);
        }
        if (page.next === null) break;
        after = page.next;
      }
    }
  }
}

/** Each commit, followed by what it changed. */
async function* pastLines(reader: RecordReader, last: number): AsyncGenerator<string, void, undefined> {
  const turn = pace();
  for (let from = 0; from < last;) {
    const page = await readSince(reader, from, { limit: limits.pageMax });
    const changes = Map.groupBy(page.items, ({ commit }) => commit);
    for (const commit of await readCommits(reader, from, Math.min(page.commit, last))) {
      yield toJson(commitLine(commit));
      for (const change of changes.get(commit.id) ?? []) {
        const text = toJson(changeLine(change), wholeLine);
        yield text;
        await turn(text);
      }
    }
    from = page.commit;
  }
}

function commitLine({ id, at, actor, reason, metadata, cause }: CommitRecord): Record<string, unknown> {
  return { commit: id, at, actor, reason, metadata, cause };
}

function changeLine({ kind, type, key, value }: ChangeRecord): Record<string, unknown> {
  return kind === "deleted" ? { change: kind, type, key } : { change: kind, type, key, value };
}

function namesOf(type: AnyRecordType): string[] {
  checkDefinition(type, "types");
  return type.kind === "entity" ? [type.name] : [type.from.name, type.to.name, type.name];
}
