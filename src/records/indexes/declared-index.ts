// The indexes that definitions declare: of a field, of the texts in an array, and of the words in several fields. PostgreSQL maintains
// all of them by itself. On SQLite the last two are tables that triggers maintain, whichever program writes; the last part to be
// built proves that all of it was.
import { createHash } from "node:crypto";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { joinSql, rawSql, render, sql, type Dialect, type Sql } from "../../storage/sql.ts";
import type { AnyRecordType, Path } from "../define/definition.ts";
import type { Scope } from "../query/compile.ts";
import { fieldTerm, indexedExpressions, literal } from "../query/term.ts";

export type Built = {
  readonly name: string;
  readonly table: "record" | "record_version" | "record_item" | "record_words";
  readonly texts: readonly string[];
  /** SQLite: what begins so keeps words of the same type for programs that search other fields. */
  readonly others?: string;
};

/** All indexes that a definition declares. */
export function indexesOf(dialect: Dialect, { name, indexes, search }: AnyRecordType): Built[] {
  const fields = indexes.flatMap(({ path, temporal, each }) => {
    if (each) return [itemIndex(dialect, path)];
    const tables = temporal ? (["record", "record_version"] as const) : (["record"] as const);
    return tables.flatMap((table) => fieldIndexes(dialect, path, table));
  });
  return search.length === 0 ? fields : [wordIndex(dialect, { name, search }), ...fields];
}

/** An index that the engine maintains by itself. */
function plainIndex(dialect: Dialect, name: string, table: "record" | "record_version", on: Sql): Built {
  const how = dialect === "sqlite" ? "" : "concurrently ";
  const { text } = render(on, dialect);
  return { name, table, texts: [`create index ${how}if not exists ${name} on daybook_${table} ${text}`] };
}

export const triggerSuffixes = ["made", "changed", "gone"] as const;

/** SQLite: the triggers that maintain a table beside the records; `when` picks the records that belong in it. */
function triggers(name: string, put: string, gone: string, when: (row: "new" | "old") => string = () => ""): string[] {
  const trigger = (suffix: (typeof triggerSuffixes)[number], event: string, row: "new" | "old", work: string): string =>
    `create trigger if not exists ${name}_${suffix} after ${event} on daybook_record ${when(row)} begin ${work}; end`;
  return [
    trigger("made", "insert", "new", put),
    trigger("changed", "update of body", "new", `${gone}; ${put}`),
    trigger("gone", "delete", "old", gone),
  ];
}

/** The expressions come from the function that filters use, so both are always spelt alike. */
export function fieldIndexes(dialect: Dialect, path: Path, table: "record" | "record_version"): Built[] {
  return indexedExpressions(dialect, path).map((expression, index) => {
    const name = `${table}_field_${pathHash(path)}${index === 0 ? "" : "_number"}`;
    return plainIndex(dialect, name, table, sql`(type_seq, (${expression}))`);
  });
}

function pathHash(path: Path): string {
  return hashOf(JSON.stringify(path), 16);
}

function hashOf(text: string, letters: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, letters);
}

function itemIndex(dialect: Dialect, path: Path): Built {
  const hash = pathHash(path);
  const name = `record_items_${hash}`;
  if (dialect === "postgres") {
    const { json } = fieldTerm("postgres", { column: rawSql("body") }, path, true);
    return plainIndex("postgres", name, "record", sql`using gin (${json} jsonb_path_ops)`);
  }
  const gone = `delete from daybook_record_item where path = '${hash}' and record_seq = old.seq`;
  const texts = [
    `create table if not exists daybook_record_item (tenant_id text not null, path text not null, type_seq integer not null,
      value text not null, record_seq integer not null,
      primary key (tenant_id, path, type_seq, value, record_seq)) strict, without rowid`,
    ...triggers(name, insertItems(path, hash, "new"), gone),
    insertItems(path, hash, "record"),
    `create index if not exists ${name} on daybook_record_item (record_seq) where path = '${hash}'`,
  ];
  return { name, table: "record_item", texts };
}

/** Inserts the texts of one new row, or of all rows. */
function insertItems(path: Path, hash: string, row: "new" | "record"): string {
  const { type, raw } = fieldTerm("sqlite", { column: rawSql(`${row}.body`) }, path, true);
  const { text } = render(sql`json_each(case when ${type} = 'array' then ${raw} end)`, "sqlite");
  const from = row === "new" ? text : `daybook_record record, ${text}`;
  return `insert or ignore into daybook_record_item (tenant_id, path, type_seq, value, record_seq)
    select ${row}.tenant_id, '${hash}', ${row}.type_seq, item.value, ${row}.seq from ${from} as item where item.type = 'text'`;
}

/** Whether the array at an indexed path has this text. */
export function hasItem({ dialect, record, tenant, typeSeq }: Scope, path: Path, value: string): Sql {
  if (dialect === "sqlite") {
    return sql`${record}.seq in (select record_seq from daybook_record_item where tenant_id = ${tenant}
      and path = ${pathHash(path)} and type_seq = ${typeSeq} and value = ${value})`;
  }
  const { json } = fieldTerm("postgres", { column: sql`${record}.body` }, path, true);
  return sql`${json} @> ${JSON.stringify([value])}::text::jsonb`;
}

// Each entry also holds the number of its type, as a word that no search can contain. Both engines intersect it with the words
// from the rarest to the most frequent, so the cost of a search does not tell how often other tenants use a word.
//
// Each set of fields has words of its own, so that a program finds by the fields that it declares, whatever others search by.
function wordIndex(dialect: Dialect, { name: type, search: paths }: Searched): Built {
  const name = wordsName({ name: type, search: paths });
  if (dialect === "postgres") {
    const vector = vectorOf(rawSql("type_seq"), rawSql("body"), paths);
    return plainIndex("postgres", name, "record", sql`using gin ((${vector}))`);
  }
  const table = `daybook_${name}`;
  const ours = (row: string): string =>
    `${row}.type_seq in (select seq from daybook_record_type where name = ${literal(type)})`;
  const words = (row: string): string => render(wordsOf(dialect, rawSql(`${row}.body`), paths), dialect).text;
  const gone = `delete from ${table} where rowid = old.seq`;
  const put = `insert into ${table} (rowid, type, words) values (new.seq, new.type_seq, ${words("new")})`;
  const texts = [
    `create virtual table if not exists ${table} using fts5(type, words, content='', contentless_delete=1,
      tokenize='unicode61 remove_diacritics 0')`,
    ...triggers(name, put, gone, (row) => `when ${ours(row)}`),
    `insert into ${table} (rowid, type, words) select seq, type_seq, ${words("record")} from daybook_record record
      where ${ours("record")} and seq not in (select rowid from ${table})`,
    `create index if not exists ${name} on daybook_record_type (seq) where name = ${literal(type)}`,
  ];
  return { name, table: "record_words", texts, others: wordsPrefix(type) };
}

type Searched = Pick<AnyRecordType, "name" | "search">;

const wordsPrefix = (type: string): string => `record_words_${hashOf(type, 12)}_`;

/** The name of the index of words of a type in these fields; on SQLite also that of their table. */
export function wordsName({ name, search }: Searched): string {
  return `${wordsPrefix(name)}${hashOf(JSON.stringify(search), 12)}`;
}

export function checkWords(text: string): string {
  if (typeof text !== "string") throw invalid("search takes a text: the words to look for");
  if (text.length > limits.searchCharactersMax) {
    throw invalid(
      `search looks for a text of ${text.length} characters, and ${limits.searchCharactersMax} at most: leave some words out`,
    );
  }
  const words = wordsIn(text);
  if (words.length === 0) throw invalid(`search ${JSON.stringify(text.slice(0, 60))} has no word in it`);
  if (words.length > limits.searchWordsMax) {
    throw invalid(`search looks for ${words.length} words, and at most for ${limits.searchWordsMax}: leave some out`);
  }
  return text;
}

function wordsIn(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/** Whether a record of the type has all these words, in any of the fields. */
export function hasWords({ dialect, record, typeSeq }: Scope, type: Searched, text: string): Sql {
  const words = wordsIn(text);
  if (dialect === "postgres") {
    const vector = vectorOf(sql`${record}.type_seq`, sql`${record}.body`, type.search);
    return sql`${vector} @@ (${`'=${typeSeq}'`}::tsquery && plainto_tsquery('simple'::regconfig, ${words.join(" ")}::text))`;
  }
  const match = `type : "${typeSeq}" AND words : (${words.map((word) => `"${word}"`).join(" ")})`;
  const table = rawSql(`daybook_${wordsName(type)}`);
  return sql`${record}.seq in (select rowid from ${table} where ${table} match ${match})`;
}

// PostgreSQL would take an address, a file name or a number with its signs as one word. FTS5 splits at every sign, so here signs
// become spaces first.
const signs = "!\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~";

function vectorOf(typeSeq: Sql, body: Sql, paths: readonly Path[]): Sql {
  const spaces = " ".repeat(signs.length - 1);
  const plain = sql`translate(${wordsOf("postgres", body, paths)}, ${rawSql(`'${signs}', '${spaces}'`)})`;
  return sql`(array_to_tsvector(array['=' || ${typeSeq}::text]) || to_tsvector('simple'::regconfig, ${plain}))`;
}

/** The texts of all fields, one after the other. */
function wordsOf(dialect: Dialect, body: Sql, paths: readonly Path[]): Sql {
  const parts = paths.map((path) => {
    const { type, raw, text } = fieldTerm(dialect, { column: body }, path, true);
    return dialect === "sqlite" ? sql`case when ${type} = 'text' then ${raw} else '' end` : sql`coalesce(${text}, '')`;
  });
  return joinSql(parts, " || ' ' || ");
}
