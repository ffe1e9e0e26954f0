// Asks the book a question: pages of records, or numbers about them.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { rawSql, sql, type Sql } from "../../storage/sql.ts";
import { asText } from "../../storage/word.ts";
import { toEntry, type Entry, type EntryRow } from "../entry.ts";
import { momentOf, type AsOf, type Moment } from "../moment.ts";
import type { RecordReader } from "../record-reader.ts";
import type { AnyRecordType } from "../define/definition.ts";
import { hasWords } from "../indexes/word-index.ts";
import { groupBy, selectFolds, type Fold } from "./aggregate.ts";
import type { Scope } from "./compile.ts";
import { type Condition, type Place, checkBytes, evaluate, follow } from "./condition.ts";
import { type Order, type OrderValue, questionMark, readCursor, writeCursor, after, orderBy } from "./order.ts";
import { readFrom, scopeOf, subjectOf, type Subject } from "./source.ts";
import type { RecordPage } from "./query.ts";

export type Question = {
  readonly name: string;
  /** Missing where only the book knows the type. */
  readonly type: AnyRecordType | undefined;
  readonly where: readonly Condition[];
  readonly orders: readonly Order[];
  readonly limit?: number;
  readonly offset?: number;
  readonly after?: string;
  readonly asOf?: AsOf;
  /** Words that must all occur in the fields that the type declares for it. */
  readonly search?: string;
};

type Asked = {
  readonly subject: Subject;
  readonly moment: Moment;
  readonly where: Condition;
  readonly scope: Scope;
  readonly words: Sql;
};

async function ask(reader: RecordReader, question: Question): Promise<Asked | undefined> {
  checkBytes(question.where);
  const moment = await momentOf(reader, question.asOf);
  const row = await reader.typeOf(question.name);
  if (row === undefined) return undefined;
  refuseSides(row.kind, question.where);
  const subject = subjectOf(reader, row, question.type);
  const indexes = moment === null && reader.pending().length === 0 ? subject.indexes : [];
  const scope = scopeOf(reader, { subject, moment, names: { next: 1000 }, indexes, alias: rawSql("r") });
  const words = wordsSql(reader, question, moment, row.seq);
  return { subject, moment, where: { op: "and", of: question.where }, scope, words };
}

export async function readPage<Type extends AnyRecordType>(
  reader: RecordReader,
  question: Question,
): Promise<RecordPage<Type>> {
  const { orders, limit = limits.pageDefault, offset = 0, name } = question;
  const mark = questionMark([
    reader.tenant,
    name,
    question.where,
    orders,
    asOfText(question.asOf),
    question.search ?? null,
  ]);
  const cursor = question.after === undefined ? undefined : readCursor(question.after, mark, orders.length);
  const asked = await ask(reader, question);
  if (asked === undefined) return { items: [], next: null };
  const { subject, moment, where, scope, words } = asked;
  const beyond = cursor === undefined ? sql`` : sql`and ${after(scope, orders, cursor.values, cursor.key)}`;
  const found = sql`
    select r.key, r.from_key, r.to_key, r.instance_key, r.body, r.revision, r.from_commit, r.schema_version
    ${readFrom(reader, subject, moment, where, "ordered")} ${words} ${beyond} ${orderBy(scope, orders)}
    limit ${limit + 1} offset ${offset}`;
  const { rows, more } = await reader.page<EntryRow>(withText(reader, found));
  const page = rows.slice(0, limit);
  const items = page.map((row) => toEntry<Type>(name, row));
  const [last, lastRow] = [items.at(-1), page.at(-1)];
  if ((rows.length <= limit && !more) || last === undefined || lastRow === undefined) return { items, next: null };
  const values = orders.map(({ at }) => orderValue(valueAt(last, lastRow, at)));
  return { items, next: writeCursor({ values, key: lastRow.key }, mark) };
}

/** The same rows with their documents as text. PostgreSQL sorts what it is asked for, and large documents are sorted where they
 *  lie: a text would be made of each of them first, and carried along. */
function withText({ dialect }: RecordReader, found: Sql): Sql {
  if (dialect === "sqlite") return found;
  return sql`select key, from_key, to_key, instance_key, body${asText} as body, revision, from_commit, schema_version
    from (${found}) as found`;
}

/** One row for each group; one in all when there are no groups. */
export async function readFolds(
  reader: RecordReader,
  question: Question,
  groups: Readonly<Record<string, Place>>,
  folds: Readonly<Record<string, Fold>>,
  having?: Condition,
): Promise<Record<string, unknown>[]> {
  if (
    question.orders.length > 0 ||
    question.after !== undefined ||
    question.offset !== undefined ||
    question.limit !== undefined
  ) {
    throw invalid("an aggregate is about all records that match: leave out orderBy, limit, offset and after");
  }
  const [groupNames, foldNames] = [Object.keys(groups), Object.keys(folds)];
  const asked = await ask(reader, question);
  const none = Object.fromEntries(foldNames.map((name) => [name, folds[name]?.fold === "count" ? 0 : null]));
  if (asked === undefined) return groupNames.length === 0 ? [none] : [];
  const places = Object.values(groups);
  if (places.some((place) => place.side === "from" || place.side === "to")) {
    throw invalid("relations are grouped by their own fields and keys, not by those of their endpoints");
  }
  // Inside the arms of a question about the past there is no index to be spelt like.
  const scope: Scope = { ...asked.scope, indexes: [] };
  const rows = await reader.heavy<Record<string, unknown>>(sql`
    ${selectFolds(scope, places, Object.values(folds))}
    ${readFrom(reader, asked.subject, asked.moment, asked.where, "unordered")} ${asked.words} ${groupBy(places)}
    limit ${limits.groupsMax + 1}`);
  if (rows.length > limits.groupsMax) {
    throw invalid(
      `groupBy makes more than ${limits.groupsMax} groups: narrow it with where, group by a field of fewer values, or read a list`,
    );
  }
  return rows
    .map((row) => ({
      ...Object.fromEntries(groupNames.map((name, index) => [name, JSON.parse(row[`g${index}`] as string) as unknown])),
      ...Object.fromEntries(foldNames.map((name, index) => [name, foldValue(folds[name], row[`f${index}`])])),
    }))
    .filter((row) => having === undefined || evaluate(having, ({ path }) => follow(row, path)))
    .sort((one, other) => (groupKey(one, groupNames) < groupKey(other, groupNames) ? -1 : 1));
}

function wordsSql(reader: RecordReader, { name, type, search }: Question, moment: Moment, typeSeq: number): Sql {
  if (search === undefined) return sql``;
  if (type === undefined || type.search.length === 0) {
    throw invalid(`"${name}" declares no fields to search: entity(…, { search: ["title"] })`);
  }
  if (!reader.isBuilt(type)) {
    throw invalid(`the words of "${name}" are not gathered: open the book with its definition in "use" to search it`);
  }
  if (moment !== null || reader.pending().length > 0) {
    throw invalid("search is about what is known and committed: leave out asOf, and search before you write");
  }
  return sql`and ${hasWords(reader.dialect, rawSql("r"), typeSeq, type.search, search)}`;
}

function foldValue(fold: Fold | undefined, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (fold?.fold === "min" || fold?.fold === "max") return JSON.parse(value as string) as unknown;
  return Number(value);
}

function groupKey(row: Record<string, unknown>, names: readonly string[]): string {
  return JSON.stringify(names.map((name) => row[name]));
}

function valueAt(entry: Entry, row: EntryRow, { side, path }: Place): unknown {
  if (side === "value") return follow(entry.value, path);
  return {
    key: row.key,
    fromKey: row.from_key,
    toKey: row.to_key,
    instanceKey: row.instance_key,
    from: null,
    to: null,
  }[side];
}

function orderValue(value: unknown): OrderValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "string" || typeof value === "number" ? value : null;
}

function asOfText(asOf: AsOf | undefined): unknown {
  return typeof asOf === "object" && !(asOf instanceof Date)
    ? asOf.epochMilliseconds
    : asOf instanceof Date
      ? asOf.getTime()
      : (asOf ?? null);
}

function refuseSides(kind: "entity" | "relation", conditions: readonly Condition[]): void {
  for (const condition of conditions) {
    if (condition.op === "and" || condition.op === "or") refuseSides(kind, condition.of);
    else if (condition.op === "not") refuseSides(kind, [condition.of]);
    else if (kind === "entity" && !["value", "key"].includes(condition.at.side)) {
      throw invalid(`an entity has no "${condition.at.side}": only relations have endpoints`);
    } else if (kind === "relation" && condition.at.side === "key") {
      throw invalid('a relation has no key of its own: ask for "fromKey", "toKey" or "instanceKey"');
    }
  }
}
