// Asks the book a question: for pages of records, or for numbers about them.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { makeEach } from "../../storage/make-each.ts";
import { timeMs } from "../../core/time.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { follow, type AnyRecordType } from "../define/definition.ts";
import { entryColumns, toEntry, type Entry, type EntryRow } from "../entry.ts";
import { hasWords } from "../indexes/declared-index.ts";
import { momentOf, type AsOf, type Moment } from "../commit.ts";
import type { RecordReader } from "../record-reader.ts";
import { compileCondition, termAt, type Scope } from "./compile.ts";
import { checkBytes, evaluate, leavesOf, type Condition, type Place } from "./condition.ts";
import type { Aggregate, RecordPage } from "./query.ts";
import { after, questionMark, readPageEnd, sortedBy, writePageEnd, type Order, type OrderValue } from "./order.ts";
import { readFrom, scopeOf } from "./source.ts";
import type { Term } from "./term.ts";

export type Question = {
  readonly name: string;
  /** Missing when only the book knows the type. */
  readonly type: AnyRecordType | undefined;
  readonly where: readonly Condition[];
  readonly orders: readonly Order[];
  readonly limit?: number;
  readonly offset?: number;
  readonly after?: string;
  readonly asOf?: AsOf;
  /** Words that must all occur in the fields that the type declares for search. */
  readonly search?: string;
};

/** What a question means here: the records to read, `from … where …`, and what places mean for them. */
type Asked = { readonly from: Sql; readonly scope: Scope };

async function ask(
  reader: RecordReader,
  question: Question,
  order: "ordered" | "unordered",
): Promise<Asked | undefined> {
  const { type, where } = question;
  checkBytes(where);
  const moment = await momentOf(reader, question.asOf);
  const row = await reader.typeOf(question.name);
  if (row === undefined) return undefined;
  refuseSides(row.kind, where);
  // A type that the book was not opened with is read without its indexes, because they may not be built.
  const indexes = type !== undefined && reader.isBuilt(type) ? type.indexes : [];
  // The rows of a past moment come from several tables, so there is no index whose spelling must be met.
  const isLive = moment === null && reader.pending().length === 0;
  const scope = scopeOf(reader, row, moment, isLive ? indexes : [], { next: 1000 });
  const found = readFrom(reader, row, indexes, moment, { op: "and", of: where }, order);
  return { from: sql`${found} ${wordsSql(reader, scope, question, moment)}`, scope };
}

export async function readPage<Type extends AnyRecordType>(
  reader: RecordReader,
  question: Question,
): Promise<RecordPage<Type>> {
  const { orders, limit = limits.pageDefault, offset = 0, name } = question;
  const { where: conditions, asOf, search = null } = question;
  const then = typeof asOf === "object" ? timeMs(asOf, "asOf") : (asOf ?? null);
  const mark = questionMark([reader.tenant, name, conditions, orders, then, search]);
  const cursor = question.after === undefined ? undefined : readPageEnd(question.after, mark, orders.length);
  const asked = await ask(reader, question, "ordered");
  if (asked === undefined) return { items: [], next: null };
  const { from, scope } = asked;
  const beyond = cursor === undefined ? sql`` : sql`and ${after(scope, orders, cursor.values, cursor.key)}`;
  const sorted = sortedBy(scope, orders);
  const found = sql`${from} ${beyond} ${sorted.order} limit ${limit + 1} offset ${offset}`;
  const { rows, more } = await reader.page<EntryRow>(selectEntries(reader, found, sorted));
  const page = rows.slice(0, limit);
  const items = await makeEach(page, (row) => toEntry<Type>(name, row), reader.turn);
  const [last, lastRow] = [items.at(-1), page.at(-1)];
  if ((rows.length <= limit && !more) || last === undefined || lastRow === undefined) return { items, next: null };
  const values = orders.map(({ at }) => orderValue(valueAt(last, lastRow, at)));
  return { items, next: writePageEnd({ values, key: lastRow.key }, mark) };
}

/** On PostgreSQL the documents become text only after the sort and the limit; otherwise each large document would become text first
 *  and be carried along. */
function selectEntries({ dialect }: RecordReader, found: Sql, { columns, order }: ReturnType<typeof sortedBy>): Sql {
  if (dialect === "sqlite") return sql`select ${entryColumns("r")} ${found}`;
  return sql`select ${entryColumns("found")} from (select r.*${columns} ${found}) as found ${order}`;
}

/** Numbers about many records: one row for each group, or one row when there are no groups. Without records, a count is 0 and
 *  everything else is null. */
export async function readAggregates(
  reader: RecordReader,
  question: Question,
  groups: Readonly<Record<string, Place>>,
  aggregates: Readonly<Record<string, Aggregate<unknown>>>,
  having?: Condition,
): Promise<Record<string, unknown>[]> {
  const { orders, after: cursor, offset, limit } = question;
  if (orders.length > 0 || [cursor, offset, limit].some((given) => given !== undefined)) {
    throw invalid("an aggregate is about all records that match: leave out orderBy, limit, offset and after");
  }
  const [groupNames, names] = [Object.keys(groups), Object.keys(aggregates)];
  const asked = await ask(reader, question, "unordered");
  const none = Object.fromEntries(names.map((name) => [name, aggregates[name]?.how === "count" ? 0 : null]));
  if (asked === undefined) return groupNames.length === 0 ? [none] : [];
  const places = Object.values(groups);
  if (places.some((place) => place.side === "from" || place.side === "to")) {
    throw invalid("relations are grouped by their own fields and keys, not by those of their endpoints");
  }
  const scope: Scope = { ...asked.scope, indexes: [] };
  const rows = await reader.heavy<Record<string, unknown>>(sql`
    ${selectAggregates(scope, places, Object.values(aggregates))}
    ${asked.from} ${groupBy(places)} limit ${limits.groupsMax + 1}`);
  if (rows.length > limits.groupsMax) {
    throw invalid(
      `groupBy makes more than ${limits.groupsMax} groups: narrow it with where, group by a field of fewer values, or read a list`,
    );
  }
  const made = await makeEach(
    rows,
    (row) => {
      const values = groupNames.map((_, index) => JSON.parse(row[`g${index}`] as string) as unknown);
      const group = Object.fromEntries(groupNames.map((name, index) => [name, values[index]]));
      const numbers = Object.fromEntries(
        names.map((name, index) => [name, aggregateValue(aggregates[name], row[`f${index}`])]),
      );
      return { key: JSON.stringify(values), result: { ...group, ...numbers } };
    },
    reader.turn,
  );
  return made
    .filter(({ result }) => having === undefined || evaluate(having, ({ path }) => follow(result, path)))
    .sort((one, other) => (one.key < other.key ? -1 : 1))
    .map(({ result }) => result);
}

function wordsSql(reader: RecordReader, scope: Scope, { name, type, search }: Question, moment: Moment): Sql {
  if (search === undefined) return sql``;
  if (type === undefined || type.search.length === 0) {
    throw invalid(`"${name}" declares no fields to search: entity(…, { search: ["title"] })`);
  }
  if (!reader.isBuilt(type)) {
    throw invalid(`"${name}" has no index of words here: open the book with its definition in "use" to search it`);
  }
  if (moment !== null || reader.pending().length > 0) {
    throw invalid("search finds committed records as they are now: leave out asOf, and search before you write");
  }
  return sql`and ${hasWords(scope, type.search, search)}`;
}

function aggregateValue(aggregate: Aggregate<unknown> | undefined, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (aggregate?.how === "min" || aggregate?.how === "max") return JSON.parse(value as string) as unknown;
  return Number(value);
}

function valueAt(entry: Entry, row: EntryRow, { side, path }: Place): unknown {
  if (side === "value") return follow(entry.value, path);
  const keys = { key: row.key, fromKey: row.from, toKey: row.to, instanceKey: row.instance, from: null, to: null };
  return keys[side];
}

function orderValue(value: unknown): OrderValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "string" || typeof value === "number" ? value : null;
}

function refuseSides(kind: "entity" | "relation", conditions: readonly Condition[]): void {
  for (const { at } of conditions.flatMap(leavesOf)) {
    if (kind === "entity" && !["value", "key"].includes(at.side)) {
      throw invalid(`an entity has no "${at.side}": only relations have endpoints`);
    }
    if (kind === "relation" && at.side === "key") {
      throw invalid('a relation has no key of its own: ask for "fromKey", "toKey" or "instanceKey"');
    }
  }
}

/** `select` with the groups first, as JSON, and a column for each aggregate after them. */
function selectAggregates(scope: Scope, groups: readonly Place[], aggregates: readonly Aggregate<unknown>[]): Sql {
  const keys = groups.map(
    (place, index) => sql`${groupText(scope, termAt(scope, place))} as g${rawSql(String(index))}`,
  );
  const values = aggregates.map(
    (aggregate, index) => sql`${aggregateSql(scope, aggregate)} as f${rawSql(String(index))}`,
  );
  return sql`select ${joinSql([...keys, ...values], ", ")}`;
}

/** By position in the select, because the same expression with another parameter is another expression. */
function groupBy(groups: readonly Place[]): Sql {
  return rawSql(groups.length === 0 ? "" : `group by ${groups.map((_, index) => index + 1).join(", ")}`);
}

function groupText({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite" ? sql`coalesce(${term.json}, 'null')` : sql`coalesce(${term.json}, 'null'::jsonb)::text`;
}

function aggregateSql(scope: Scope, { how, at, where }: Aggregate<unknown>): Sql {
  if (how === "count" || at === null) {
    return where === null ? rawSql("count(*)") : sql`count(case when ${compileCondition(scope, where)} then 1 end)`;
  }
  const term = termAt(scope, at);
  switch (how) {
    case "sum":
      return total(scope, number(scope, term));
    case "avg":
      return average(scope, number(scope, term));
    case "avgLength":
      return average(scope, lengthOf(scope, term));
    case "min":
    case "max": {
      const best = rawSql(how);
      if (scope.dialect === "sqlite") {
        return sql`json_quote(${best}(case ${term.type} when 'text' then ${term.value} else ${number(scope, term)} end))`;
      }
      const [text, value] = [sql`to_jsonb(${best}(${term.text}))`, sql`to_jsonb(${best}(${term.number}))`];
      // Numbers come before texts.
      return how === "min" ? sql`coalesce(${value}, ${text})::text` : sql`coalesce(${text}, ${value})::text`;
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
    : sql`case ${term.type} when 'array' then jsonb_array_length(${term.json}) end`;
}

function total({ dialect }: Scope, value: Sql): Sql {
  return dialect === "sqlite" ? sql`sum(${value})` : sql`sum(${value})::double precision`;
}

function average(scope: Scope, value: Sql): Sql {
  return sql`${total(scope, value)} / nullif(count(${value}), 0)`;
}
