// Numbers about many records: one row for each group, or one row when there are no groups.
import { checkCount } from "../../core/count.ts";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { quote } from "../../core/quote.ts";
import { limits } from "../../core/limits.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { makeEach } from "../../storage/make-each.ts";
import { follow } from "../define/definition.ts";
import type { RecordReader } from "../record-reader.ts";
import { compileCondition, termAt, type Scope } from "./compile.ts";
import { checkCondition, compare, evaluate, leavesOf, type Condition, type Place } from "./condition.ts";
import { fieldsOf, type AnyField, type Fields } from "./field.ts";
import { orderValue, sortables } from "./order.ts";
import { ask, type Question } from "./read-query.ts";
import { orderOf } from "./related.ts";
import { fieldTerm, type Term } from "./term.ts";

/** One value that is computed from many documents. */
export type Aggregate<Result> = {
  readonly how: "count" | "sum" | "avg" | "min" | "max" | "avgLength";
  readonly at: Place | null;
  readonly where: Condition | null;
  /** For the compiler alone. */
  readonly "~result"?: Result;
};

type Aggregates = Readonly<Record<string, Aggregate<unknown>>>;

/** Which groups are given, and in which order. */
export type GroupOptions<Row> = GroupsBy<Fields<Row>>;

type GroupsBy<Row> = {
  /** Only groups for which this holds. */
  readonly having?: (row: Row) => Condition;
  /** Ties, and groups without this, are in the order of the groups' values: null first, then numbers, then texts. */
  readonly orderBy?: (row: Row) => AnyField;
  readonly direction?: "asc" | "desc";
  /** At most so many. */
  readonly limit?: number;
};

/** What is wanted of groups, checked. */
type Wanted = {
  readonly having?: Condition;
  readonly order: string | undefined;
  readonly direction: "asc" | "desc";
  readonly limit?: number;
};

type Row = Record<string, unknown>;

/** Without records, a count is 0 and everything else is null. */
export async function readAggregates(
  reader: RecordReader,
  question: Question,
  groups: Readonly<Record<string, Place>>,
  aggregates: Aggregates,
  options: GroupsBy<never> = {},
): Promise<Row[]> {
  const { orders, after: cursor, offset, limit, with: along } = question;
  if (orders.length > 0 || [cursor, offset, limit, along].some((given) => given !== undefined)) {
    throw invalid("an aggregate is about all records that match: leave out orderBy, limit, offset, after and with");
  }
  const [groupNames, names] = [Object.keys(groups), Object.keys(aggregates)];
  const twice = groupNames.find((each) => names.includes(each));
  if (twice !== undefined) {
    throw invalid(
      `a group and a number are both named ${quote(twice)}: a row has one value of each name, so rename one`,
    );
  }
  const wanted = checkOptions(options, [...groupNames, ...names]);
  const places = [...Object.values(groups), ...Object.values(aggregates).flatMap(({ at }) => at ?? [])];
  const counted = Object.values(aggregates).flatMap(({ where }) => where ?? []);
  const asked = await ask(reader, question, "unordered", places, counted);
  const none = Object.fromEntries(names.map((name) => [name, aggregates[name]?.how === "count" ? 0 : null]));
  if (asked === undefined) return groupNames.length === 0 ? [none] : [];
  const read = async (scale: number): Promise<Row[]> => {
    const scope: Scope = { ...asked.scope, indexes: [] };
    return reader.heavy<Row>(selectGroups(scope, asked.from, groups, aggregates, wanted, scale));
  };
  let [rows, scale] = [await read(1), 1];
  // A sum in between was no number any more. What it comes to may still be one, and is on PostgreSQL, which adds decimals.
  if (rows.some((row) => Object.values(row).includes(Infinity) || Object.values(row).includes(-Infinity))) {
    [rows, scale] = [await read(small), small];
  }
  if (rows.length > limits.groupsMax) {
    throw invalid(
      `groupBy makes more than ${limits.groupsMax} groups: narrow it with where, group by a field of fewer values, give a limit without having, or read a list`,
    );
  }
  const made = await makeEach(
    rows,
    (row) => {
      const values = groupNames.map((name, index) => [name, JSON.parse(row[`g${index}`] as string) as unknown]);
      const numbers = names.map((name, index) => [name, valueOf(name, aggregates[name], row[`f${index}`], scale)]);
      return Object.fromEntries([...values, ...numbers]) as Row;
    },
    reader.turn,
  );
  const { having, order, direction } = wanted;
  return made
    .filter((row) => having === undefined || evaluate(having, ({ path }) => follow(row, path)))
    .map((row) => ({ row, by: order === undefined ? null : row[order], values: groupNames.map((name) => row[name]) }))
    .sort((one, other) => {
      const sign = direction === "asc" ? 1 : -1;
      const first = sign * compareValues(one.by, other.by);
      return first || (order === undefined ? sign : 1) * compareLists(one.values, other.values);
    })
    .slice(0, wanted.limit)
    .map(({ row }) => row);
}

function checkOptions(options: GroupsBy<never>, names: readonly string[]): Wanted {
  refuseUnknown(options, ["having", "orderBy", "direction", "limit"], "the groups");
  const { having, orderBy, direction = "asc", limit } = options;
  const row = fieldsOf("value") as never;
  const order = orderOf(orderBy ?? (() => fieldsOf("value")()), [row], direction);
  const [name, ...inside] = order.at.path;
  if (orderBy !== undefined && (name === undefined || inside.length > 0 || !names.includes(name))) {
    throw invalid(`groups are ordered by one of their values: ${names.join(", ")}`);
  }
  return {
    order: name,
    direction,
    ...(having === undefined ? {} : { having: checkHaving(checkCondition(having(row))) }),
    ...(limit === undefined ? {} : { limit: checkCount(limit, "limit", 1, limits.groupsMax) }),
  };
}

function checkHaving(condition: Condition): Condition {
  if (leavesOf(condition).every(({ at, op }) => at.side === "value" && op !== "related")) return condition;
  throw invalid("having is about the values of a group: row(…) names them");
}

/** Null first (and objects and arrays with it), then numbers (and booleans as 0 and 1), then texts by code point: the order of lists. */
function compareValues(one: unknown, other: unknown): number {
  const [a, b] = [orderValue(one), orderValue(other)];
  if (a === null || b === null || typeof a !== typeof b) return rankOf(a) - rankOf(b);
  return compare(a, b);
}

function rankOf(value: string | number | null): number {
  return value === null ? 0 : typeof value === "number" ? 1 : 2;
}

function compareLists(some: readonly unknown[], others: readonly unknown[]): number {
  for (const [index, one] of some.entries()) {
    const difference = compareValues(one, others[index]) || compareJson(one, others[index]);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** What the order does not tell apart: 1 and true, null and objects. */
function compareJson(one: unknown, other: unknown): number {
  const [a, b] = [one, other].map((value) => toJson(value ?? null)) as [string, string];
  return a === b ? 0 : a === "null" || (b !== "null" && a < b) ? -1 : 1;
}

// A power of two, so that scaled numbers keep all their digits; a table has fewer rows than it has zeros.
const small = 2 ** -64;

function valueOf(name: string, aggregate: Aggregate<unknown> | undefined, value: unknown, scale: number): unknown {
  if (value === null || value === undefined) return null;
  if (aggregate?.how === "min" || aggregate?.how === "max") return JSON.parse(value as string) as unknown;
  const isScaled = aggregate?.how === "sum" || aggregate?.how === "avg";
  const number = isScaled ? Number(value) / scale : Number(value);
  if (Number.isFinite(number)) return number;
  throw invalid(`"${name}" is beyond the largest number, ${Number.MAX_VALUE}: narrow it with where`);
}

/** The groups, as JSON in `g0`, `g1` …, and the aggregates in `f0`, `f1` …; when only some groups are wanted, the first ones. */
function selectGroups(
  scope: Scope,
  from: Sql,
  groups: Readonly<Record<string, Place>>,
  aggregates: Aggregates,
  wanted: Wanted,
  scale: number,
): Sql {
  const keys = Object.values(groups).map(
    (place, index) => sql`${groupJson(scope, termAt(scope, place))} as ${column("g", index)}`,
  );
  const values = Object.values(aggregates).map(
    (aggregate, index) => sql`${aggregateSql(scope, aggregate, scale)} as ${column("f", index)}`,
  );
  // By position in the select, because the same expression with another parameter is another expression.
  const by = rawSql(keys.length === 0 ? "" : `group by ${keys.map((_, index) => index + 1).join(", ")}`);
  const all = sql`select ${joinSql([...keys, ...values], ", ")} ${from} ${by}`;
  const isCut = wanted.limit !== undefined && wanted.having === undefined && keys.length > 0;
  const order = isCut ? orderSql(scope, Object.keys(groups), aggregates, wanted) : sql``;
  const most = isCut ? (wanted.limit ?? 0) : limits.groupsMax + 1;
  return sql`select ${joinSql(
    [...keys, ...values].map((_, index) => textOf(scope, keys.length, index)),
    ", ",
  )}
    from (${all}) as found ${order} limit ${most}`;
}

function column(letter: "g" | "f", index: number): Sql {
  return rawSql(`${letter}${index}`);
}

/** As text on PostgreSQL: its driver would make other numbers of large counts and decimals. */
function textOf({ dialect }: Scope, groups: number, index: number): Sql {
  const name = index < groups ? column("g", index) : column("f", index - groups);
  return dialect === "sqlite" ? name : sql`${name}::text as ${name}`;
}

function orderSql(scope: Scope, groupNames: readonly string[], aggregates: Aggregates, wanted: Wanted): Sql {
  const { order, direction } = wanted;
  const groups = new Map(groupNames.map((name, index) => [name, jsonOrder(scope, column("g", index))]));
  const first = order === undefined ? [] : (groups.get(order) ?? aggregateOrder(scope, aggregates, order));
  const [way, ties] = [direction, order === undefined ? direction : "asc"].map(rawSql) as [Sql, Sql];
  const nulls = rawSql(direction === "asc" ? "nulls first" : "nulls last");
  const all = [
    ...first.map((each) => sql`${each} ${way} ${nulls}`),
    ...[...groups.values()].flat().map((each) => sql`${each} ${ties}`),
  ];
  return sql`order by ${joinSql(all, ", ")}`;
}

function aggregateOrder(scope: Scope, aggregates: Aggregates, name: string): Sql[] {
  const value = column("f", Object.keys(aggregates).indexOf(name));
  const how = aggregates[name]?.how;
  if (how === "min" || how === "max") return jsonOrder(scope, value);
  return [scope.dialect === "sqlite" ? value : sql`${value}::numeric`];
}

function jsonOrder({ dialect }: Scope, json: Sql): Sql[] {
  return sortables(dialect, fieldTerm(dialect, { column: json }, [], false));
}

function groupJson({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite" ? sql`coalesce(${term.json}, 'null')` : sql`coalesce(${term.json}, 'null'::jsonb)`;
}

function aggregateSql(scope: Scope, { how, at, where }: Aggregate<unknown>, scale: number): Sql {
  if (how === "count" || at === null) {
    return where === null ? rawSql("count(*)") : sql`count(case when ${compileCondition(scope, where)} then 1 end)`;
  }
  const term = termAt(scope, at);
  const value = number(scope, term);
  const scaled = scale === 1 ? value : sql`(${value}) * ${rawSql(String(scale))}`;
  switch (how) {
    case "sum":
      return scope.dialect === "sqlite" ? sql`sum(${scaled})` : sql`sum(${value})::text`;
    case "avg":
      return average(scope, scaled);
    case "avgLength":
      return average(scope, lengthOf(scope, term));
    case "min":
    case "max": {
      const best = rawSql(how);
      if (scope.dialect === "sqlite") {
        return sql`json_quote(${best}(case ${term.type} when 'text' then ${term.value} else ${value} end))`;
      }
      const [text, size] = [sql`to_jsonb(${best}(${term.text}))`, sql`to_jsonb(${best}(${term.number}))`];
      // Numbers come before texts.
      return how === "min" ? sql`coalesce(${size}, ${text})` : sql`coalesce(${text}, ${size})`;
    }
  }
}

// As doubles: SQLite would refuse sums of integers that do not fit into 64 bits.
function number({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite"
    ? sql`case when ${term.type} in ('integer', 'real') then cast(${term.value} as real) end`
    : term.number;
}

function lengthOf({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite"
    ? sql`case ${term.type} when 'array' then cast(json_array_length(${term.raw}) as real) end`
    : sql`(case ${term.type} when 'array' then jsonb_array_length(${term.json}) end)::numeric`;
}

// PostgreSQL adds decimals, whose sum may be no number any more when the average still is; otherwise it divides as SQLite does.
function average({ dialect }: Scope, value: Sql): Sql {
  const [sum, count] = [sql`sum(${value})`, sql`nullif(count(${value}), 0)`];
  if (dialect === "sqlite") return sql`${sum} / ${count}`;
  return sql`(case when abs(${sum}) <= 1.7976931348623157e308 then (${sum}::double precision / ${count})::text
    else (${sum} / ${count})::text end)`;
}
