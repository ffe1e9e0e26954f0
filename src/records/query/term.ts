// The one place that knows how a field of a document is spelt in SQL. Filters and indexes both come from here, so an index is
// always spelt like the filter that needs it. A path becomes SQL text only if a definition in code declared an index on it; every
// other path travels as a parameter.
import { joinSql, rawSql, sql, type Dialect, type Sql } from "../../storage/sql.ts";
import type { Path } from "../define/definition.ts";

/** A value in a document, as both engines see it. `type` is spelt as the engine does. */
export type Term = {
  /** SQLite: the value, booleans as 1 and 0. With an index, objects and arrays are null. */
  readonly value: Sql;
  /** SQLite: the value, objects and arrays as text. */
  readonly raw: Sql;
  readonly type: Sql;
  /** The value as JSON. */
  readonly json: Sql;
  /** PostgreSQL: the value where it is a text or a number, else null. */
  readonly text: Sql;
  readonly number: Sql;
  /** Whether there is an index on it. */
  readonly indexed: boolean;
};

/** The JSON to look into: a column, or an item of an array (`item` is the alias of its row). */
export type Root = { readonly column: Sql; readonly item?: Sql };

const nothing = rawSql("null");

/** A number to compare with one in a document. SQLite reads a document's whole number as a 64-bit integer, and a bound number as
 *  a double; beyond 2^53 the two differ, so such a number is read as JSON too. */
export function sqliteNumber(value: number): Sql {
  const isLarge = Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLarge ? sql`json_extract(${JSON.stringify(value)}, '$')` : sql`${value}`;
}

export function fieldTerm(dialect: Dialect, root: Root, path: Path, indexed: boolean): Term {
  return dialect === "sqlite" ? sqliteTerm(root, path, indexed) : postgresTerm(root, path, indexed);
}

/** A column that holds a text. */
export function columnTerm(dialect: Dialect, column: Sql): Term {
  const same = { type: rawSql("'text'"), number: nothing, indexed: false };
  return dialect === "sqlite"
    ? { ...same, value: column, raw: column, json: sql`json_quote(${column})`, text: nothing }
    : { ...same, value: nothing, raw: nothing, json: sql`to_jsonb(${column})`, text: sql`${column} collate "C"` };
}

function sqliteTerm({ column, item }: Root, path: Path, indexed: boolean): Term {
  const unused = { text: nothing, number: nothing, indexed };
  if (item !== undefined && path.length === 0) {
    return { ...unused, value: sql`${item}.value`, raw: sql`${item}.value`, type: sql`${item}.type`, json: nothing };
  }
  // The `value` of a text item is the text itself, not JSON.
  const document =
    item === undefined ? column : sql`case when ${item}.type in ('object', 'array') then ${item}.value end`;
  const at = indexed ? rawSql(literal(sqlitePath(path))) : sql`${sqlitePath(path)}`;
  const [raw, type] = [sql`json_extract(${document}, ${at})`, sql`json_type(${document}, ${at})`];
  return {
    ...unused,
    raw,
    type,
    value: indexed ? sql`(case when ${type} in ('object', 'array') then null else ${raw} end)` : raw,
    json: sql`(${document} -> ${at})`,
  };
}

function postgresTerm({ column, item }: Root, path: Path, indexed: boolean): Term {
  const steps = path.map((name) => (indexed ? rawSql(`-> ${literal(name)}`) : sql`-> ${name}::text`));
  const root = item === undefined ? column : sql`${item}.value`;
  const json = path.length === 0 ? root : sql`(${root} ${joinSql(steps)})`;
  return {
    value: nothing,
    raw: nothing,
    type: sql`jsonb_typeof(${json})`,
    json,
    indexed,
    text: sql`(case jsonb_typeof(${json}) when 'string' then ${json} #>> '{}' end) collate "C"`,
    number: sql`(case jsonb_typeof(${json}) when 'number' then (${json})::numeric end)`,
  };
}

/** `$."address"."city"`; SQLite reads the names as JSON texts. */
function sqlitePath(path: Path): string {
  return `$${path.map((name) => `.${JSON.stringify(name)}`).join("")}`;
}

export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

// PostgreSQL refuses index entries above about 2,700 bytes, so only the beginning of a text is indexed.
const indexedLetters = 200;

/** As much of a text as the index on PostgreSQL holds. */
export function beginning(text: string): string {
  return text.length <= indexedLetters ? text : Array.from(text).slice(0, indexedLetters).join("");
}

export function beginningOf(term: Term): Sql {
  return sql`left(${term.text}, ${rawSql(String(indexedLetters))})`;
}

/** The expressions to index for a declared path. */
export function indexedExpressions(dialect: Dialect, path: Path): Sql[] {
  const term = fieldTerm(dialect, { column: rawSql("body") }, path, true);
  return dialect === "sqlite" ? [term.value] : [beginningOf(term), term.number];
}
