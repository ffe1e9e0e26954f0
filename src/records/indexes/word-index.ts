// The index of words in declared fields. Both engines have one: PostgreSQL maintains it by itself, on SQLite triggers do,
// whichever program writes. Its last part to be built proves that all of it was.
//
// Each entry also holds the number of its type, as a word that no search can contain. Both engines intersect it with the words
// from the rarest to the most frequent, so the cost of a search does not tell how often other tenants use a word.
import { createHash } from "node:crypto";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { joinSql, rawSql, render, sql, type Dialect, type Sql } from "../../storage/sql.ts";
import type { Path } from "../define/field-index.ts";
import { fieldTerm } from "../query/term.ts";
import type { Built } from "./item-index.ts";

export function textIndex(dialect: Dialect, type: string, paths: readonly Path[]): Built {
  const prefix = `record_words_${hashOf(type)}_`;
  const name = `${prefix}${hashOf(JSON.stringify(paths))}`;
  if (dialect === "postgres") {
    const { text } = render(sql`using gin ((${vectorOf(rawSql("type_seq"), rawSql("body"), paths)}))`, "postgres");
    return {
      name,
      table: "record",
      texts: [`create index concurrently if not exists ${name} on daybook_record ${text}`],
    };
  }
  const ours = (row: string): string =>
    `${row}.type_seq in (select seq from daybook_record_type where name = '${type.replaceAll("'", "''")}')`;
  const words = (row: string): string => render(wordsOf(dialect, rawSql(`${row}.body`), paths), dialect).text;
  const gone = `delete from daybook_record_words where rowid = old.seq`;
  const put = `insert into daybook_record_words (rowid, type, words) values (new.seq, new.type_seq, ${words("new")})`;
  const texts = [
    `create virtual table if not exists daybook_record_words using fts5(type, words, content='', contentless_delete=1,
      tokenize='unicode61 remove_diacritics 0')`,
    `create trigger if not exists ${name}_made after insert on daybook_record when ${ours("new")} begin ${put}; end`,
    `create trigger if not exists ${name}_changed after update of body on daybook_record when ${ours("new")} begin ${gone}; ${put}; end`,
    `create trigger if not exists ${name}_gone after delete on daybook_record when ${ours("old")} begin ${gone}; end`,
    `insert into daybook_record_words (rowid, type, words) select seq, type_seq, ${words("record")} from daybook_record record
      where ${ours("record")} and seq not in (select rowid from daybook_record_words)`,
    `create index if not exists ${name} on daybook_record_type (seq) where name = '${type.replaceAll("'", "''")}'`,
  ];
  return {
    name,
    table: "record_words",
    texts,
    instead: {
      prefix,
      clear: `delete from daybook_record_words where rowid in (select seq from daybook_record record where ${ours("record")})`,
    },
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
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
export function hasWords(dialect: Dialect, alias: Sql, typeSeq: number, paths: readonly Path[], text: string): Sql {
  const words = wordsIn(text);
  if (dialect === "postgres") {
    const vector = vectorOf(sql`${alias}.type_seq`, sql`${alias}.body`, paths);
    return sql`${vector} @@ (${`'=${typeSeq}'`}::tsquery && plainto_tsquery('simple'::regconfig, ${words.join(" ")}::text))`;
  }
  const match = `type : "${typeSeq}" AND words : (${words.map((word) => `"${word}"`).join(" ")})`;
  return sql`${alias}.seq in (select rowid from daybook_record_words where daybook_record_words match ${match})`;
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
