// Writes an exported history anew: each commit with its number, its time and who made it, so that the past reads as it did. An import that
// was interrupted goes on where it ended, because what is there must be how the export begins.
import type { Cause } from "../core/cause.ts";
import { conflict, DaybookError, invalid } from "../core/error.ts";
import { isObject, toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { timeMs } from "../core/time.ts";
import { addNotes, readCommits, readHead, type CommitNotes } from "./commit.ts";
import type { AnyRecordType, RelationKey } from "./define/definition.ts";
import { checkDocument, nameRecord, recordKey, type RecordKey } from "./define/record-key.ts";
import { storedDefinition, type WritableType } from "./define/record-type.ts";
import type { Imported, ImportOptions } from "./import.ts";
import type { GivenLine } from "./read-export.ts";
import { pace } from "../storage/slices.ts";
import type { RecordReader } from "./record-reader.ts";
import type { ChangeKind, RecordRoom } from "./room.ts";
import { flushUnits, holdHead } from "./write/flush.ts";
import { createUnit } from "./write/record-unit.ts";

type PastChange = {
  readonly number: number;
  readonly kind: ChangeKind;
  readonly type: AnyRecordType;
  readonly at: RecordKey;
  readonly body: string | null;
};

type PastCommit = {
  readonly id: number;
  readonly at: number;
  readonly notes: CommitNotes;
  readonly cause: Cause | undefined;
  readonly changes: PastChange[];
};

export async function importHistory(
  reader: RecordReader,
  room: RecordRoom,
  given: readonly GivenLine[],
  { dryRun = false, ...options }: ImportOptions,
): Promise<Imported> {
  const refused = Object.keys(options).find((name) => name !== "allowTruncated");
  if (refused !== undefined) throw invalid(`a history brings its commits as they were: leave out ${refused}`);
  const past = await toPast(reader, room.definitions, given);
  await checkLast(past);
  const todo = past.slice(await checkBeginning(reader, past));
  const counts = { created: 0, updated: 0, deleted: 0, unchanged: 0, skipped: 0 };
  for (const { changes } of todo) for (const { kind } of changes) counts[kind]++;
  if (!dryRun) for (const part of inParts(todo)) await writePast(reader.tenant, room, part);
  return { ...counts, commits: todo.length, dryRun };
}

async function toPast(
  reader: RecordReader,
  definitions: ReadonlyMap<string, AnyRecordType>,
  given: readonly GivenLine[],
): Promise<PastCommit[]> {
  const types = new Map<string, AnyRecordType>(definitions);
  const live = new Set<string>();
  const past: PastCommit[] = [];
  const turn = pace();
  for (const { number, line } of given) {
    await turn(past.at(-1)?.changes.at(-1)?.body ?? "");
    try {
      if (line["commit"] !== undefined) {
        past.push(toCommit(line, past.length + 1));
        continue;
      }
      const name = line["type"];
      if (typeof name !== "string") throw invalid("it is neither a commit nor a change");
      const type = types.get(name) ?? (await storedDefinition(reader, name));
      types.set(name, type);
      past.at(-1)?.changes.push(toChange(line, type, number, live));
    } catch (error) {
      const cause = error as DaybookError;
      throw new DaybookError(cause.code ?? "invalid", `line ${number}: ${cause.message}`, {
        cause,
        details: { line: number },
      });
    }
  }
  return past;
}

function toCommit(line: Readonly<Record<string, unknown>>, expected: number): PastCommit {
  const { commit: id, at, actor, reason, metadata, cause } = line;
  if (id !== expected) throw invalid(`commit ${String(id)} stands where ${expected} is expected`);
  const given = Object.entries({ actor, reason, metadata }).filter(([, value]) => value !== null);
  const notes = addNotes({}, Object.fromEntries(given));
  return { id: expected, at: timeMs(at as number, "at"), notes, cause: toCause(cause), changes: [] };
}

function toCause(given: unknown): PastCommit["cause"] {
  if (!isObject(given)) return undefined;
  const { runId, rootRunId } = given;
  return typeof runId === "string"
    ? { runId, rootRunId: typeof rootRunId === "string" ? rootRunId : runId }
    : undefined;
}

function toChange(
  { change: kind, key, value }: Readonly<Record<string, unknown>>,
  type: AnyRecordType,
  number: number,
  live: Set<string>,
): PastChange {
  const at = recordKey(type, key as string | RelationKey);
  const place = `${type.name}\n${at.key}`;
  if (kind !== "created" && kind !== "updated" && kind !== "deleted")
    throw invalid(`${String(kind)} is no kind of change`);
  if (live.has(place) === (kind === "created")) {
    throw invalid(
      `${nameRecord(type.name, at)} is ${kind}, but ${live.has(place) ? "is there already" : "is not there"}`,
    );
  }
  if (kind === "deleted") {
    live.delete(place);
    return { number, kind, type, at, body: null };
  }
  if (!isObject(value)) throw invalid(`a document of "${type.name}" must be an object with named fields`);
  live.add(place);
  return { number, kind, type, at, body: toJson(value, { what: type.name }) };
}

/** What there is in the end is read by this program, so it fits its schemas; what was before is only kept. */
async function checkLast(past: readonly PastCommit[]): Promise<void> {
  const last = new Map<string, PastChange>();
  for (const change of past.flatMap(({ changes }) => changes))
    last.set(`${change.type.name}\n${change.at.key}`, change);
  const turn = pace();
  for (const { type, at, body, number } of last.values()) {
    if (body === null) continue;
    await turn(body);
    await checkDocument(type, JSON.parse(body)).catch((error: unknown) => {
      throw invalid(`line ${number}: ${nameRecord(type.name, at)}: ${(error as Error).message}`, { cause: error });
    });
  }
}

/** How many of the commits are there already. */
async function checkBeginning(reader: RecordReader, past: readonly PastCommit[]): Promise<number> {
  const head = (await readHead(reader)).commit ?? 0;
  for (let from = 0; from < head; from += limits.pageMax) {
    for (const { id, at, actor, reason, changes } of await readCommits(
      reader,
      from,
      Math.min(head, from + limits.pageMax),
    )) {
      const same = past[id - 1];
      const isSame = same?.at === at && same.changes.length === changes;
      if (isSame && (same.notes.actor ?? null) === actor && (same.notes.reason ?? null) === reason) continue;
      throw conflict(
        `commit ${id} is another one than in the export: import a history where there is none, or where it began`,
        { commit: id, head },
      );
    }
  }
  return head;
}

function* inParts(past: readonly PastCommit[]): Generator<PastCommit[]> {
  let part: PastCommit[] = [];
  let changes = 0;
  for (const commit of past) {
    part.push(commit);
    changes += commit.changes.length;
    if (changes < limits.pageMax) continue;
    yield part;
    [part, changes] = [[], 0];
  }
  if (part.length > 0) yield part;
}

async function writePast(tenant: string, room: RecordRoom, part: readonly PastCommit[]): Promise<void> {
  await room.store.write(
    async (tx) => {
      await holdHead(tx);
      const point = <R>(statement: Parameters<typeof tx.all>[0]) => tx.all<R>(statement);
      const head = (await readHead({ tenant, point })).commit ?? 0;
      if (head !== (part[0]?.id ?? 0) - 1)
        throw conflict(`another writer made commit ${head} meanwhile: import again`, { head });
      const types = new Map<AnyRecordType, WritableType>();
      for (const { at, notes, cause, changes } of part) {
        const unit = createUnit(tx, room, cause, { types, seen: new Map() });
        unit.notes = notes;
        unit.madeAt = at;
        for (const [type, ofType] of Map.groupBy(changes, (change) => change.type)) {
          const keys = ofType.map((change) => change.at.key);
          await unit.prefetch(type, keys, "without documents");
        }
        for (const change of changes) await unit.set(change.type, change.at, change.body);
        await flushUnits(tx, [unit]);
      }
    },
    { tenant },
  );
}
