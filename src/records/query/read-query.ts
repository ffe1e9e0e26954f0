// Asks the book a question: for pages of records, or for numbers about them.
import { conflict, invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { makeEach } from "../../storage/make-each.ts";
import { timeMs } from "../../core/time.ts";
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { follow, type AnyRecordType } from "../define/definition.ts";
import { entryColumns, toEntry, type Entry, type EntryOf, type EntryRow } from "../entry.ts";
import { hasWords, wordsName } from "../indexes/declared-index.ts";
import type { AsOf, Moment } from "../commit.ts";
import type { RecordReader } from "../record-reader.ts";
import { alongSql, readAlong } from "./along.ts";
import type { Sort } from "./arms.ts";
import { termAt, type Scope } from "./compile.ts";
import { checkValues, type Condition, type Place } from "./condition.ts";
import { groundOf } from "./ground.ts";
import { after, orderValue, questionMark, readPageEnd, sortedBy, writePageEnd, type Order } from "./order.ts";
import type { RecordPage } from "./query.ts";
import type { WithDocuments } from "./related.ts";
import { readFrom, type Ground } from "./source.ts";

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
  /** What is read along with each record. */
  readonly with?: WithDocuments;
};

/** What a question means here: the records to read, `from … where …`, and what places mean for them. */
type Asked = { readonly from: Sql; readonly scope: Scope; readonly ground: Ground; readonly sort: Sort };

/** `places` are those that are read, and `also` the conditions, besides those that say which records it is about. */
export async function ask(
  reader: RecordReader,
  question: Question,
  order: "ordered" | "unordered",
  places: readonly Place[],
  also: readonly Condition[] = [],
): Promise<Asked | undefined> {
  checkValues([question.where, question.with, also]);
  const where: Condition = { op: "and", of: question.where };
  const found = await groundOf(reader, question, where, also, places);
  if (found === undefined) return undefined;
  const { ground, sort } = found;
  const ends = places.map(({ side }) => side).filter((side) => side === "from" || side === "to");
  const { from, scope } = readFrom(ground, sort, where, { order, ends });
  const words = await wordsSql(reader, scope, question, ground.moment);
  return { ground, sort, scope, from: sql`${from} ${words}` };
}

type PageRow = EntryRow & { readonly [column: `end${number}` | `along${number}`]: string | null };

export async function readPage<Type extends AnyRecordType>(
  reader: RecordReader,
  question: Question,
): Promise<RecordPage<EntryOf<Type>>> {
  const { orders, limit = limits.pageDefault, offset = 0, name, with: along = {} } = question;
  const { where: conditions, asOf, search = null } = question;
  const then = typeof asOf === "object" ? timeMs(asOf, "asOf") : (asOf ?? null);
  const mark = questionMark([reader.tenant, name, conditions, orders, then, search]);
  const cursor = question.after === undefined ? undefined : readPageEnd(question.after, mark, orders.length);
  const places = orders.map(({ at }) => at);
  const asked = await ask(reader, question, "ordered", places);
  if (asked === undefined) return { items: [], next: null };
  const { from, scope } = asked;
  const beyond = cursor === undefined ? sql`` : sql`and ${after(scope, orders, cursor.values, cursor.key)}`;
  const sorted = sortedBy(scope, orders);
  const found = sql`${from} ${beyond} ${sorted.order} limit ${limit + 1} offset ${offset}`;
  const { rows, more } = await reader.page<PageRow>(selectEntries(asked, found, sorted, places, along));
  const page = rows.slice(0, limit);
  const items = await makeEach(page, (row) => toDocument<Type>(name, row, along), reader.turn);
  const [last, lastRow] = [items.at(-1), page.at(-1)];
  if ((rows.length <= limit && !more) || last === undefined || lastRow === undefined) return { items, next: null };
  const values = places.map((at, index) => orderValue(valueAt(last, lastRow, at, index)));
  return { items, next: writePageEnd({ values, key: lastRow.key }, mark) };
}

function toDocument<Type extends AnyRecordType>(name: string, row: PageRow, along: WithDocuments): EntryOf<Type> {
  const entry = toEntry<Type>(name, row);
  if (Object.keys(along).length === 0) return entry;
  const found = Object.keys(along).map((_, index) => JSON.parse(row[`along${index}`] ?? "[]") as unknown);
  return Object.assign(entry, { related: readAlong(along, found, row.key) });
}

/** Selects a `PageRow` for each record. On PostgreSQL the documents become text only after the sort and the limit; otherwise each large
 *  document would become text first and be carried along. What is read along is looked up after the limit, too. */
function selectEntries(
  { ground, scope }: Asked,
  found: Sql,
  { columns, order }: ReturnType<typeof sortedBy>,
  places: readonly Place[],
  along: WithDocuments,
): Sql {
  const isSqlite = scope.dialect === "sqlite";
  const ends = places.flatMap((place, index) =>
    place.side === "from" || place.side === "to"
      ? [{ json: termAt(scope, place).json, name: rawSql(`end${index}`) }]
      : [],
  );
  const read = joinSql(ends.map(({ json, name }) => sql`, ${json} as ${name}`));
  const related = alongSql(ground, along, rawSql("found.key"));
  if (isSqlite && related.length === 0) return sql`select ${entryColumns("r")} ${read} ${found}`;
  const text = rawSql(isSqlite ? "" : "::text");
  const more = joinSql([
    ...ends.map(({ name }) => sql`, found.${name}${text} as ${name}`),
    ...related.map((each, index) => sql`, ${each}${text} as ${rawSql(`along${index}`)}`),
  ]);
  return isSqlite
    ? sql`with found as materialized (select r.*${read} ${found}) select ${entryColumns("found")} ${more} from found`
    : sql`select ${entryColumns("found")} ${more} from (select r.*${columns}${read} ${found}) as found ${order}`;
}

async function wordsSql(
  reader: RecordReader,
  scope: Scope,
  { name, type, search }: Question,
  moment: Moment,
): Promise<Sql> {
  if (search === undefined) return sql``;
  if (type === undefined || type.search.length === 0) {
    throw invalid(`"${name}" declares no fields to search: entity(…, { search: ["title"] })`);
  }
  if (reader.built(name) !== type) {
    throw invalid(`"${name}" has no index of words here: open the book with its definition in "use" to search it`);
  }
  if (moment !== null || reader.pending().length > 0) {
    throw invalid("search finds committed records as they are now: leave out asOf, and search before you write");
  }
  // SQLite keeps the words for the fields of two programs; on PostgreSQL an index that is gone would only make this slower.
  if (reader.dialect === "sqlite") {
    const [kept] = await reader.point(
      sql`select 1 as kept from sqlite_schema where type = 'index' and name = ${wordsName(type)}`,
    );
    if (kept === undefined) {
      throw conflict(
        `the words of "${name}" are no longer kept for the fields that this program searches, because others with other fields opened the book since: open it again`,
        { type: name },
      );
    }
  }
  return sql`and ${hasWords(scope, type, search)}`;
}

function valueAt(entry: Entry, row: PageRow, { side, path }: Place, index: number): unknown {
  if (side === "value") return follow(entry.value, path);
  if (side === "from" || side === "to") return JSON.parse(row[`end${index}`] ?? "null") as unknown;
  const keys = { key: row.key, fromKey: row.from, toKey: row.to, instanceKey: row.instance };
  return keys[side];
}
