// For each field of a record: the commit that last set it to what it is.
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { readHistory, type Version } from "./history.ts";
import { recordKey } from "./record-key.ts";
import type { RecordReader } from "./record-reader.ts";
import type { AnyRecordType, RelationKey } from "./relation.ts";
import { notFound } from "./write.ts";

export type Blamed = Pick<Version, "commit" | "at" | "actor" | "reason" | "revision">;

export async function readBlame(
  reader: RecordReader,
  type: AnyRecordType,
  key: string | RelationKey,
): Promise<Record<string, Blamed>> {
  let fields: Record<string, unknown> | null = null;
  let blamed = new Map<string, Blamed>();
  let after: number | null = 0;
  while (after !== null) {
    const { items, next }: Awaited<ReturnType<typeof readHistory<Record<string, unknown>>>> = await readHistory(
      reader,
      type,
      key,
      { after, limit: limits.pageMax },
    );
    for (const { value, commit, at, actor, reason, revision } of items) {
      blamed = new Map(
        Object.entries(value ?? {}).map(([name, now]) => {
          const before = fields !== null && Object.hasOwn(fields, name) ? toJson(fields[name]) : undefined;
          const kept = before === toJson(now) ? blamed.get(name) : undefined;
          return [name, kept ?? { commit, at, actor, reason, revision }];
        }),
      );
      fields = value;
    }
    after = next;
  }
  if (fields === null) throw notFound(type.name, recordKey(type, key));
  return Object.fromEntries(blamed);
}
