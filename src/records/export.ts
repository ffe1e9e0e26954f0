// Records as lines of JSON: a header, then the entities, then the relations, all of one commit.
import { refuseUnknown } from "../core/suggest.ts";
import { limits } from "../core/limits.ts";
import { toJson } from "../core/json.ts";
import { momentOf, readHead, type AsOf } from "./moment.ts";
import { readPage } from "./query/read-query.ts";
import type { RecordReader } from "./record-reader.ts";
import { checkDefinition, type AnyRecordType } from "./relation.ts";
import { listTypes } from "./stored-type.ts";

export type ExportOptions = {
  /** Only these; relations bring the entities that they connect. */
  readonly types?: readonly AnyRecordType[];
  readonly asOf?: AsOf;
};

export const exportFormat = "daybook-records";

export async function* exportRecords(
  reader: RecordReader,
  options: ExportOptions,
): AsyncGenerator<string, void, undefined> {
  refuseUnknown(options, ["types", "asOf"], "export");
  const wanted = options.types === undefined ? undefined : new Set(options.types.flatMap(namesOf));
  // All pages are of one commit, however long the reader takes.
  const moment = (await momentOf(reader, options.asOf)) ?? (await readHead(reader)).commit ?? 0;
  yield toJson({ format: exportFormat, version: 1, commit: moment });
  const known = (await listTypes(reader)).filter((type) => wanted === undefined || wanted.has(type.name));
  for (const kind of ["entity", "relation"] as const) {
    for (const { name } of known.filter((type) => type.kind === kind)) {
      for (let after: string | undefined; ;) {
        const question = { name, type: undefined, where: [], orders: [], asOf: moment, limit: limits.pageMax };
        const page = await readPage(reader, after === undefined ? question : { ...question, after });
        for (const { key, value } of page.items) yield toJson({ type: name, key, value });
        if (page.next === null) break;
        after = page.next;
      }
    }
  }
}

function namesOf(type: AnyRecordType): string[] {
  checkDefinition(type, "types");
  return type.kind === "entity" ? [type.name] : [type.from.name, type.to.name, type.name];
}
