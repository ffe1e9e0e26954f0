// What is looked up before a question is asked: the moment it is about, the types that it names, and where its search begins.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { rawSql, sql } from "../../storage/sql.ts";
import { momentOf } from "../commit.ts";
import type { AnyRecordType, Index } from "../define/definition.ts";
import type { TypeRow } from "../define/record-type.ts";
import type { RecordReader } from "../record-reader.ts";
import { endTypes, isLive, type Sort } from "./arms.ts";
import { compileCondition } from "./compile.ts";
import { leavesOf, type Condition, type Place, type Side } from "./condition.ts";
import { beginningsOf, markOf, type Beginning } from "./few.ts";
import type { Question } from "./read-query.ts";
import type { WithDocuments } from "./related.ts";
import { scopeOf, type Ground } from "./source.ts";

/** The ground of a question, and the type that it is about; undefined when nothing of that type was ever written. `also`: what is
 *  asked of the records that fit, such as which of them to count. */
export async function groundOf(
  reader: RecordReader,
  { name, type, asOf, with: along = {} }: Question,
  where: Condition,
  also: readonly Condition[],
  places: readonly Place[],
): Promise<{ readonly ground: Ground; readonly sort: Sort } | undefined> {
  const moment = await momentOf(reader, asOf);
  const row = await reader.typeOf(name);
  if (row === undefined) return undefined;
  const every: Condition = { op: "and", of: [where, ...also] };
  const relations = await readRelations(reader, [...relationsOf(every), ...relationsAlong(along)]);
  checkSides(row, every, relations);
  for (const { side } of places) checkSide(row, side);
  checkAlong(row.seq, along, relations);
  // A type that the book was not opened with is read without its indexes, because they may not be built.
  const own = type !== undefined && reader.built(name) === type ? type : undefined;
  const sort = sortOf(reader, row, own);
  const sorts = new Map([...relations].map(([each, of]) => [each, sortOf(reader, of, reader.built(each))]));
  const ground: Ground = { reader, moment, relations: sorts, few: new Set(), names: { next: 1 } };
  return { ground: { ...ground, few: await findFew(ground, sort, where) }, sort };
}

function sortOf(reader: RecordReader, row: TypeRow, type: AnyRecordType | undefined): Sort {
  const end = (seq: number, name: string | undefined): Sort => {
    const indexes = name === undefined ? [] : (reader.built(name)?.indexes ?? []);
    return { seq, indexes, ends: null };
  };
  const { from_type_seq: from, to_type_seq: to, seq } = row;
  const indexes: readonly Index[] = type?.indexes ?? [];
  if (from === null || to === null) return { seq, indexes, ends: null };
  const [start, stop] = type?.kind === "relation" ? [type.from.name, type.to.name] : [];
  return { seq, indexes, ends: { from: end(from, start), to: end(to, stop) } };
}

function relationsOf(where: Condition): string[] {
  return leavesOf(where).flatMap((leaf) => (leaf.op === "related" ? [leaf.relation, ...relationsOf(leaf.where)] : []));
}

async function readRelations(reader: RecordReader, names: readonly string[]): Promise<Map<string, TypeRow>> {
  const relations = new Map<string, TypeRow>();
  for (const name of new Set(names)) {
    const row = await reader.typeOf(name);
    if (row === undefined) continue;
    if (row.kind === "entity") throw invalid(`"${name}" is an entity: name a relation that connects the two`);
    relations.set(name, row);
  }
  return relations;
}

type Ends = Pick<TypeRow, "kind" | "seq" | "from_type_seq" | "to_type_seq">;

function checkSide({ kind }: Ends, side: Side): void {
  if (kind === "entity" && !["value", "key"].includes(side)) {
    throw invalid(`an entity has no "${side}": only relations have endpoints`);
  }
  if (kind === "relation" && side === "key") {
    throw invalid('a relation has no key of its own: ask for "fromKey", "toKey" or "instanceKey"');
  }
}

function checkSides(row: Ends, where: Condition, relations: ReadonlyMap<string, TypeRow>): void {
  for (const leaf of leavesOf(where)) {
    const { side } = leaf.at;
    checkSide(row, side);
    if (leaf.op !== "related") continue;
    if (row.kind === "relation" && side === "value") {
      throw invalid('a relation is related to nothing: ask it of its endpoints, "from" or "to"');
    }
    const relation = relations.get(leaf.relation);
    if (relation === undefined) continue;
    checkWay(side === "from" ? row.from_type_seq : side === "to" ? row.to_type_seq : row.seq, relation, leaf.way);
    checkSides(relation, leaf.where, relations);
  }
}

function relationsAlong(along: WithDocuments): string[] {
  return Object.values(along).flatMap((each) => [
    each.relation,
    ...relationsOf(each.where),
    ...relationsAlong(each.with),
  ]);
}

function checkAlong(entity: number | null, along: WithDocuments, relations: ReadonlyMap<string, TypeRow>): void {
  for (const { relation: name, way, where, with: more } of Object.values(along)) {
    const relation = relations.get(name);
    if (relation === undefined) continue;
    checkWay(entity, relation, way);
    checkSides(relation, where, relations);
    checkAlong(way === "out" ? relation.to_type_seq : relation.from_type_seq, more, relations);
  }
}

/** Checks that a relation begins (`in`: ends) at entities of this type. */
function checkWay(entity: number | null, relation: TypeRow, way: "out" | "in"): void {
  const near = way === "out" ? relation.from_type_seq : relation.to_type_seq;
  if (near === entity) return;
  throw invalid(`"${relation.name}" does not ${way === "out" ? "begin" : "end"} at the entities that are asked about`);
}

/** SQLite: the conditions with an index that few records fit. PostgreSQL knows from its statistics. */
async function findFew(ground: Ground, sort: Sort, where: Condition): Promise<ReadonlySet<string>> {
  const { reader, moment, relations } = ground;
  if (reader.dialect !== "sqlite" || moment !== null) return new Set();
  const found = beginningsOf(relations, sort, where).filter((each) => isLive(reader, moment, each.sort));
  const few = new Set<string>();
  for (const each of found.slice(0, limits.beginningsMax)) {
    if ((await countUpTo(ground, each, limits.fewRecordsMax + 1)) <= limits.fewRecordsMax) few.add(markOf(each));
  }
  return few;
}

async function countUpTo(ground: Ground, { sort, leaf }: Beginning, most: number): Promise<number> {
  const { reader } = ground;
  const alias = rawSql("fitting");
  const scope = scopeOf(ground, sort, alias, sort.indexes);
  const [row] = await reader.heavy<{
    n: number;
  }>(sql`select count(*) as n from (select 1 from daybook_record as ${alias}
    where ${alias}.tenant_id = ${reader.tenant} and ${alias}.type_seq = ${sort.seq} ${endTypes(sort, alias, ["from", "to"])}
      and ${compileCondition(scope, leaf)} limit ${most}) as some`);
  return row?.n ?? 0;
}
