// The order of a list, and where the next page begins. Missing fields come first, then numbers (and booleans as 0 and 1), then
// texts by code point. Objects and arrays count as missing. Ties go by key.
import { createHash } from "node:crypto";
import { invalid } from "../../core/error.ts";
import { toJson } from "../../core/json.ts";
import { notACursor, readCursor, writeCursor } from "../../core/page.ts";
import { joinSql, rawSql, sql, type Dialect, type Sql } from "../../storage/sql.ts";
import { termAt, type Scope } from "./compile.ts";
import type { Place } from "./condition.ts";
import { sqliteNumber, type Term } from "./term.ts";

export type Order = { readonly at: Place; readonly direction: "asc" | "desc" };

/** A row's value in one of the order's places. */
export type OrderValue = string | number | null;

export function orderBy(scope: Scope, orders: readonly Order[]): Sql {
  const parts = orders.flatMap(({ at, direction }) =>
    sortables(scope.dialect, termAt(scope, at)).map((each) => sql`${each} ${rawSql(direction)}, `),
  );
  return sql`order by ${joinSql(parts)}${keyColumn(scope)} asc`;
}

/** The rows that come after the one with these values and this key. */
export function after(scope: Scope, orders: readonly Order[], values: readonly OrderValue[], key: string): Sql {
  const steps = orders.map(({ at, direction }, index) => {
    const term = termAt(scope, at);
    const value = values[index] ?? null;
    return { beyond: beyond(scope.dialect, term, value, direction), same: same(scope.dialect, term, value) };
  });
  const last = sql`${keyColumn(scope)} > ${key}`;
  return steps.reduceRight((rest, step) => sql`(${step.beyond} or (${step.same} and ${rest}))`, last);
}

/** By code point, so that both engines have one order. */
function keyColumn(scope: Scope): Sql {
  const column = sql`${scope.columns ?? rawSql("r")}.key`;
  return scope.dialect === "sqlite" ? column : sql`${column} collate "C"`;
}

function sortables(dialect: Dialect, term: Term): Sql[] {
  return dialect === "sqlite" ? [plain(term)] : [rank(term), numeric(term), sql`coalesce(${term.text}, '')`];
}

// Spelt like its index, if it has one, so that the index gives the order. That spelling leaves out objects by itself.
function plain(term: Term): Sql {
  return term.indexed
    ? term.value
    : sql`(case when ${term.type} in ('object', 'array') then null else ${term.value} end)`;
}

function rank({ type }: Term): Sql {
  return sql`(case ${type} when 'number' then 1 when 'boolean' then 1 when 'string' then 2 when 'text' then 2 else 0 end)`;
}

function numeric({ type, number, json }: Term): Sql {
  return sql`coalesce(${number}, case ${type} when 'boolean' then (case ${json}::text when 'true' then 1 else 0 end) end, 0)`;
}

function same(dialect: Dialect, term: Term, value: OrderValue): Sql {
  if (dialect === "sqlite") return value === null ? sql`${plain(term)} is null` : sql`${plain(term)} = ${bound(value)}`;
  if (value === null) return sql`${rank(term)} = 0`;
  return typeof value === "number"
    ? sql`(${rank(term)} = 1 and ${numeric(term)} = ${value}::numeric)`
    : sql`(${rank(term)} = 2 and ${term.text} = ${value}::text)`;
}

function bound(value: string | number): Sql {
  return typeof value === "number" ? sqliteNumber(value) : sql`${value}`;
}

function beyond(dialect: Dialect, term: Term, value: OrderValue, direction: Order["direction"]): Sql {
  const up = direction === "asc";
  if (value === null) {
    if (!up) return rawSql("1 = 0");
    return dialect === "sqlite" ? sql`${plain(term)} is not null` : sql`${rank(term)} > 0`;
  }
  const sign = rawSql(up ? ">" : "<");
  if (dialect === "sqlite") {
    return up
      ? sql`${plain(term)} > ${bound(value)}`
      : sql`(${plain(term)} < ${bound(value)} or ${plain(term)} is null)`;
  }
  const own =
    typeof value === "number"
      ? sql`${numeric(term)} ${sign} ${value}::numeric`
      : sql`${term.text} ${sign} ${value}::text`;
  const class_ = rawSql(typeof value === "number" ? "1" : "2");
  return sql`(${rank(term)} ${sign} ${class_} or (${rank(term)} = ${class_} and ${own}))`;
}

/** Where a page ended: the last record's values in the places of the order, and its key. A cursor belongs to one question and is
 *  refused with another. */
type PageEnd = { readonly values: readonly OrderValue[]; readonly key: string };

/** A hash that tells one question from another. */
export function questionMark(question: unknown): string {
  return createHash("sha256")
    .update(toJson(question, { bytesMax: 64 * 1024 * 1024 }))
    .digest("base64url")
    .slice(0, 12);
}

export function writePageEnd({ values, key }: PageEnd, mark: string): string {
  return writeCursor([mark, key, ...values]);
}

export function readPageEnd(text: string, mark: string, orders: number): PageEnd {
  const [of, key, ...values] = readCursor(text);
  if (typeof of !== "string" || typeof key !== "string" || !values.every(isOrderValue)) throw notACursor(text);
  if (of !== mark || values.length !== orders) {
    throw invalid("the cursor belongs to another question: begin again without it, or ask as for the page before");
  }
  return { values, key };
}

function isOrderValue(value: unknown): value is OrderValue {
  return value === null || typeof value === "string" || typeof value === "number";
}
