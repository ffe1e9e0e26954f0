// The records of a type at a moment, as something to read from, and what the places of conditions mean there.
import { invalid } from "../../core/error.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import type { Moment } from "../commit.ts";
import { samePath, type Index } from "../define/definition.ts";
import type { RecordReader } from "../record-reader.ts";
import { armsOf, armsOfOne, type Arm, type Owner, type Sort } from "./arms.ts";
import { compileCondition, type Scope } from "./compile.ts";
import { leavesOf, type Condition, type End, type RelatedCondition } from "./condition.ts";
import { begins, holdsForNone, holdsForSome, isCount } from "./few.ts";

/** What a question stands on: who reads, as of when, and what was looked up for it. */
export type Ground = {
  readonly reader: RecordReader;
  readonly moment: Moment;
  /** The relations that its conditions name. One of which nothing was ever written is missing. */
  readonly relations: ReadonlyMap<string, Sort>;
  /** SQLite: marks of conditions on indexed places that few records fit, so that a search begins with those. */
  readonly few: ReadonlySet<string>;
  readonly names: { next: number };
};

type How = {
  readonly order: "ordered" | "unordered";
  /** The endpoints to read beside the record. */
  readonly ends?: Iterable<End>;
  readonly alias?: Sql;
  /** Only relations of one entity: which of their ends it is, and its key. */
  readonly of?: { readonly near: End; readonly key: Sql };
};

/** `from … where …`: the records of a type that fit, under an alias, with their endpoints beside them. */
export function readFrom(
  ground: Ground,
  sort: Sort,
  where: Condition,
  { order, ends = [], alias = rawSql("r"), of }: How,
): { readonly from: Sql; readonly scope: Scope } {
  const { reader, moment } = ground;
  const isAtKey = leavesOf(where).some(({ at }) => at.side === "fromKey" || at.side === "toKey");
  const free: Owner = order === "unordered" ? "implied" : isNarrow(sort.indexes, where) ? "unindexed" : "indexed";
  const ways = isAtKey ? { ends: ["from", "to"] as const } : { owner: free };
  const how = of === undefined ? ways : { near: of.near };
  const mine = of === undefined ? sql`` : sql`and ${keyAt(alias, of.near)} = ${of.key}`;
  const parts = armsOf(reader, sort, moment, alias, how).map((arm) => {
    const fits = compileCondition(scopeOf(ground, sort, alias, arm.indexes), where);
    return { table: arm.table, where: sql`where ${arm.picks} ${mine} and ${fits}` };
  });
  const joined = [...new Set(ends)].map((end) => joinEnd(ground, sort, end, alias));
  const joins = joinSql(joined.map(({ join }) => join));
  const [only, second] = parts;
  // The rows of several tables have no index whose spelling must be met.
  const scope: Scope = {
    ...scopeOf(ground, sort, alias, second === undefined ? sort.indexes : []),
    ends: Object.fromEntries(joined.map(({ end, column }) => [end, column])),
  };
  if (only !== undefined && second === undefined)
    return { from: sql`from ${only.table} ${joins} ${only.where}`, scope };
  const columns = joinSql(
    recordColumns.map((column) => sql`${alias}.${rawSql(column)}`),
    ", ",
  );
  const selects = parts.map((part) => sql`select ${columns} from ${part.table} ${part.where}`);
  return { from: sql`from (${joinSql(selects, " union all ")}) as ${alias} ${joins} where 1 = 1`, scope };
}

const recordColumns = [
  ...["key", "from_key", "to_key", "instance_key"],
  ...["body", "revision", "from_commit", "schema_version"],
];

/** An endpoint, in whichever table holds it. */
function joinEnd(
  ground: Ground,
  sort: Sort,
  end: End,
  record: Sql,
): { end: End; join: Sql; column: (name: string) => Sql } {
  const arms = armsOfEnd(ground, sort, end, record, true);
  return {
    end,
    join: joinSql(arms.map(({ table, picks }) => sql`left join ${table} on ${picks}`)),
    column(name) {
      const each = joinSql(
        arms.map(({ alias }) => sql`${alias}.${rawSql(name)}`),
        ", ",
      );
      return arms.length === 1 ? each : sql`coalesce(${each})`;
    },
  };
}

function armsOfEnd(ground: Ground, sort: Sort, end: End, record: Sql, joined = false): Arm[] {
  const nextAlias = (): Sql => aliasOf(ground, "end");
  return armsOfOne(ground.reader, sortAt(sort, end), ground.moment, keyAt(record, end), { nextAlias, joined });
}

function keyAt(record: Sql, end: End): Sql {
  return sql`${record}.${rawSql(`${end}_key`)}`;
}

function sortAt({ ends }: Sort, end: End): Sort {
  if (ends !== null) return ends[end];
  throw invalid(`an entity has no "${end}": only relations have endpoints`);
}

export function aliasOf({ names }: Ground, what: string): Sql {
  return rawSql(`${what}${names.next++}`);
}

/** What the places of conditions and orders mean for the records under this alias. */
export function scopeOf(ground: Ground, sort: Sort, record: Sql, indexes: readonly Index[] = []): Scope {
  const { dialect, tenant } = ground.reader;
  return {
    dialect,
    tenant,
    typeSeq: sort.seq,
    root: { column: sql`${record}.body` },
    record,
    indexes,
    ends: {},
    endpoint: (end, where) => endFits(ground, sort, record, end, where),
    related: (condition) => relatedSql(ground, record, condition),
    names: ground.names,
  };
}

/** Whether the endpoint fits. */
function endFits(ground: Ground, sort: Sort, record: Sql, end: End, where: Condition): Sql {
  const entity = sortAt(sort, end);
  if (begins(ground, entity, where)) {
    return sql`${keyAt(record, end)} in (${selectsOf(ground, entity, "end", "key", where)})`;
  }
  const each = armsOfEnd(ground, sort, end, record).map(({ table, picks, alias, indexes }) => {
    const fits = compileCondition(scopeOf(ground, entity, alias, indexes), where);
    return sql`exists (select 1 from ${table} where ${picks} and ${fits})`;
  });
  return sql`(${joinSql(each, " or ")})`;
}

/** Selects a key of all live records of a type that fit. */
function selectsOf(ground: Ground, sort: Sort, name: string, column: string, where: Condition): Sql {
  const alias = aliasOf(ground, name);
  const selects = armsOf(ground.reader, sort, ground.moment, alias, { ends: ["from", "to"] }).map(
    ({ table, picks, indexes }) => sql`select ${alias}.${rawSql(column)} from ${table}
      where ${picks} and ${compileCondition(scopeOf(ground, sort, alias, indexes), where)}`,
  );
  return joinSql(selects, " union all ");
}

/** Whether enough relations of the record fit. */
function relatedSql(ground: Ground, record: Sql, condition: RelatedCondition): Sql {
  const { at, relation, way, where, is, count } = condition;
  const sort = ground.relations.get(relation);
  if (sort === undefined) return rawSql(isCount(0, condition) ? "1 = 1" : "1 = 0");
  const near = way === "out" ? "from" : "to";
  const key = at.side === "from" || at.side === "to" ? keyAt(record, at.side) : sql`${record}.key`;
  const isNone = holdsForNone(condition);
  const isSome = holdsForSome(condition);
  const not = rawSql(isNone ? "not" : "");
  if ((isSome || isNone) && begins(ground, sort, where)) {
    return sql`${key} ${not} in (${selectsOf(ground, sort, "link", `${near}_key`, where)})`;
  }
  const alias = aliasOf(ground, "link");
  const each = armsOf(ground.reader, sort, ground.moment, alias, { near }).map(
    ({ table, picks, indexes }) => sql`from ${table} where ${picks} and ${keyAt(alias, near)} = ${key}
      and ${compileCondition(scopeOf(ground, sort, alias, indexes), where)}`,
  );
  if (isSome || isNone) {
    const some = each.map((from) => sql`exists (select 1 ${from})`);
    return sql`${not} (${joinSql(some, " or ")})`;
  }
  const counts = each.map((from) => sql`(select count(*) ${from})`);
  return sql`(${joinSql(counts, " + ")}) ${rawSql(signs[is])} ${count}`;
}

const signs = { eq: "=", ne: "<>", lt: "<", lte: "<=", gt: ">", gte: ">=" } as const;

/** Whether the condition, as a whole, wants few values of an indexed field. */
function isNarrow(indexes: readonly Index[], where: Condition): boolean {
  if (where.op === "and") return where.of.some((each) => isNarrow(indexes, each));
  if (where.op === "any") return indexes.some((index) => index.each && samePath(index.path, where.at.path));
  if (where.op !== "eq" && where.op !== "in" && where.op !== "startsWith") return false;
  return where.at.side === "value" && indexes.some((index) => !index.each && samePath(index.path, where.at.path));
}
