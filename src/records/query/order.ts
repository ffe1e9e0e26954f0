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

/** What the order makes of a value. */
export function orderValue(value: unknown): OrderValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "string" || typeof value === "number" ? value : null;
}

/** The order of a list. On PostgreSQL it sorts by columns that the select must have, so that two selects can have one order. SQLite
 *  sorts by expressions: a column could hold a number that JavaScript cannot. */
export function sortedBy(scope: Scope, orders: readonly Order[]): { readonly columns: Sql; readonly order: Sql } {
  const fields = orders.flatMap(({ at, direction }) =>
    sortables(scope.dialect, termAt(scope, at)).map((by) => ({ by, direction })),
  );
  const all = [...fields, { by: keyColumn(scope), direction: "asc" }].map(({ by, direction }, index) => ({
    column: sql`, ${by} as ${rawSql(`sort${index}`)}`,
    order: sql`${scope.dialect === "sqlite" ? by : rawSql(`sort${index}`)} ${rawSql(direction)}`,
  }));
  const columns = scope.dialect === "sqlite" ? [] : all.map(({ column }) => column);
  const order = all.map((each) => each.order);
  return { columns: joinSql(columns), order: sql`order by ${joinSql(order, ", ")}` };
}

/** The rows that come after the one with these values and this key. */
export function after(scope: Scope, orders: readonly Order[], values: readonly OrderValue[], key: string): Sql {
  const steps = orders.map(({ at, direction }, index) => {
    const by = sortables(scope.dialect, termAt(scope, at));
    const value = values[index] ?? null;
    return scope.dialect === "sqlite" ? sqliteStep(by, value, direction) : postgresStep(by, value, direction);
  });
  const last = sql`${keyColumn(scope)} > ${key}`;
  return steps.reduceRight((rest, step) => sql`(${step.beyond} or (${step.same} and ${rest}))`, last);
}

/** By code point, so that both engines have one order. */
function keyColumn(scope: Scope): Sql {
  const column = sql`${scope.record}.key`;
  return scope.dialect === "sqlite" ? column : sql`${column} collate "C"`;
}

// SQLite sorts values of several types by itself. PostgreSQL sorts by the kind of value first, then by the number or the text.
export function sortables(dialect: Dialect, term: Term): [Sql, ...Sql[]] {
  const { type, number, json, text } = term;
  if (dialect === "sqlite") return [plain(term)];
  return [
    sql`(case ${type} when 'number' then 1 when 'boolean' then 1 when 'string' then 2 when 'text' then 2 else 0 end)`,
    sql`coalesce(${number}, case ${type} when 'boolean' then (case ${json}::text when 'true' then 1 else 0 end) end, 0)`,
    sql`coalesce(${text}, '')`,
  ];
}

// Spelt like its index, if it has one, so that the index gives the order. That spelling leaves out objects by itself.
function plain(term: Term): Sql {
  return term.indexed
    ? term.value
    : sql`(case when ${term.type} in ('object', 'array') then null else ${term.value} end)`;
}

/** Whether a record comes after the value in one place of the order, and whether it has the same value there. */
type Step = { readonly beyond: Sql; readonly same: Sql };

function sqliteStep([by]: readonly [Sql, ...Sql[]], value: OrderValue, direction: Order["direction"]): Step {
  const isUp = direction === "asc";
  if (value === null) return { beyond: isUp ? sql`${by} is not null` : rawSql("1 = 0"), same: sql`${by} is null` };
  const bound = typeof value === "number" ? sqliteNumber(value) : sql`${value}`;
  const beyond = isUp ? sql`${by} > ${bound}` : sql`(${by} < ${bound} or ${by} is null)`;
  return { beyond, same: sql`${by} = ${bound}` };
}

function postgresStep(by: readonly Sql[], value: OrderValue, direction: Order["direction"]): Step {
  const kind = value === null ? "0" : typeof value === "number" ? "1" : "2";
  const [number, text] = [typeof value === "number" ? value : 0, typeof value === "string" ? value : ""];
  const compare = (sign: string): Sql =>
    sql`(${joinSql(by, ", ")}) ${rawSql(sign)} (${rawSql(kind)}, ${number}::numeric, ${text}::text)`;
  return { beyond: compare(direction === "asc" ? ">" : "<"), same: compare("=") };
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
