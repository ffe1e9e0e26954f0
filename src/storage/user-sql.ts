// A user's own SQL shares the book's transaction, so it may not end, nest or reconfigure it, and it shares the database with
// Daybook's own tables, which it may read and not change. The text is read just far enough to find its first word (past an
// `explain`), a second statement, what it writes to, and whether it may leave something behind in its session. On SQLite the
// engine itself refuses what the text does not show (sqlite/authorize.ts); PostgreSQL has no such ear.
import { invalid, type DaybookError } from "../core/error.ts";
import type { UserMark } from "./sql.ts";

const refused = new Set([
  ...["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare", "deallocate"],
  ...["pragma", "attach", "detach", "vacuum", "set", "reset", "discard", "listen", "unlisten", "copy", "lock"],
]);

/** Refuses statements that would break the transaction around them, or what is Daybook's. */
export function checkUserSql(text: string): UserMark {
  const tokens = significantTokens(text);
  const first = firstWord(tokens);
  if (first === undefined || first === ";") throw invalid("the SQL is empty: write one statement");
  if (refused.has(first)) {
    throw invalid(
      `"${first}" cannot run inside a transaction of the book: ${quoteSql(text)}. ` +
        "The transaction begins and ends with book.write; throw to undo it",
    );
  }
  if (!isOneStatement(tokens)) {
    throw invalid(`one statement at a time: give the rest of ${quoteSql(text)} to another tx.sql`);
  }
  const ours = changedTable(first, tokens);
  if (ours !== undefined) throw notYours(ours, text);
  if (changesSchema(first, tokens)) {
    throw invalid(`the tables of Daybook are in that schema, which SQL may not change: ${quoteSql(text)}`);
  }
  const changesIndex = (first === "drop" || first === "alter") && tokens.includes("index");
  return { leaves: mayLeave(tokens), indexes: changesIndex ? tokens.map(bareName) : [] };
}

export function notYours(table: string, text: string): DaybookError {
  return invalid(
    `"${table}" is a table of Daybook, which SQL may read and not change: ${quoteSql(text)}. Change it by the verbs of the ` +
      'book, such as tx.jobs and tx.events; a table of your own needs a name that does not begin with "daybook_"',
    { details: { table } },
  );
}

const leaving = /^(?:set_config|pg_(?:try_)?advisory_lock\w*|temp|temporary|hold)$/;
const leavingFirst = new Set(["do", "call", "load"]);
// What may stand before an opening bracket and is no function, and functions that change nothing of their session.
const harmless: ReadonlySet<string> = new Set(
  `all and any array as between by case check conflict distinct else exists filter from group having in into join key lateral not on or order
  over partition primary returning row select set some table then union unique using values when where with within
  bigint bit bytea char character decimal interval numeric time timestamp timestamptz varchar varying
  abs array_agg array_length avg bool_and bool_or cast ceil coalesce concat concat_ws count currval date_trunc decode dense_rank
  encode extract first_value floor format gen_random_uuid generate_series greatest hashtext lag last_value lead least left length
  lower ltrim max md5 min mod nextval now ntile nullif position power random rank regexp_replace replace right round row_number
  rtrim split_part sqrt strpos string_agg substr substring sum to_char to_timestamp trim trunc unnest upper`.split(
    /\s+/,
  ),
);
/** A name behind these is that of a table. */
const beforeTable = new Set(["into", "table", "references", "exists", "update", "only", "on", "with", "as"]);

/** Whether a setting, a lock, a table or a cursor of its session may outlive the transaction on PostgreSQL: it says so, or calls
 *  a function of which that is not known. */
function mayLeave(tokens: readonly string[]): boolean {
  if (leavingFirst.has(tokens[0] ?? "")) return true;
  return tokens.some((token, at) => {
    const name = token.startsWith("'") ? "" : bareName(token);
    if (leaving.test(name)) return true;
    if (tokens[at + 1] !== "(" || !/^\w/.test(name) || harmless.has(name) || /^jsonb?_/.test(name)) return false;
    let before = at - 1;
    while (tokens[before] === ".") before -= 2;
    return !beforeTable.has(tokens[before] ?? "");
  });
}

/** What changes or binds every table that such a statement names. */
const changesAll = new Set(["drop", "alter", "truncate", "reindex", "comment", "grant", "revoke", "cluster", "do"]);
/** Words that may stand between a verb and its table. */
const fillers = new Set([
  ...["table", "only", "if", "not", "exists", "concurrently"],
  ...["or", "ignore", "replace", "fail", "abort", "rollback"],
]);

/** The first of Daybook's tables that the statement would write to, alter, drop, or make. A foreign key to one counts: it
 *  would keep Daybook from removing rows. */
function changedTable(first: string, tokens: readonly string[]): string | undefined {
  // What else `alter table` names are columns and constraints of the user's own.
  const altersTable = first === "alter" && tokens[tokens.indexOf(first) + 1] === "table";
  const namesAny =
    (changesAll.has(first) && !altersTable) ||
    (first === "create" && /^(?:function|procedure|rule|policy)$/.test(kindMade(tokens)));
  const isOn = first === "create" && /^(?:index|trigger|statistics)$/.test(kindMade(tokens));
  // These take the name of a table or a whole statement as a text.
  if (tokens.some((token) => /^"?(?:setval|nextval|query_to_xml\w*|lo_import|dblink\w*)"?$/.test(token))) {
    const named = tokens.find((token) => token.startsWith("'") && /\bdaybook_\w/.test(token));
    if (named !== undefined) return /\bdaybook_\w+/.exec(named)?.[0];
  }
  for (const [at, token] of tokens.entries()) {
    // An identifier with escapes could spell anything.
    if (token === "u" && tokens[at + 1] === "&" && tokens[at + 2]?.startsWith('"') === true) return tokens[at + 2];
    const isRemark = first === "comment" && token.startsWith("'");
    if (namesAny && !isRemark && /\bdaybook_\w/.test(token)) return /\bdaybook_\w+/.exec(token)?.[0];
    const isVerb =
      token === "into" ||
      token === "references" ||
      (token === "from" && tokens[at - 1] === "delete") ||
      (token === "of" && tokens[at - 1] === "partition");
    const alters =
      altersTable &&
      ((token === "table" && tokens[at - 1] === "alter") ||
        token === "inherit" ||
        (token === "to" && tokens[at - 1] === "rename") ||
        (token === "partition" && /^(?:at|de)tach$/.test(tokens[at - 1] ?? "")));
    const inherits = token === "(" && tokens[at - 1] === "inherits";
    const makes = first === "create" && at < 4 && /^(?:table|view|index|trigger|sequence)$/.test(token);
    if (!isVerb && !alters && !inherits && !makes && token !== "update" && !(isOn && token === "on")) continue;
    const name = tableAt(tokens, at + 1);
    if (name?.startsWith("daybook_")) return name;
  }
  return undefined;
}

/** Whether it drops or renames the schema of the book with all that is in it. One of another name than the usual is not known here. */
function changesSchema(first: string, tokens: readonly string[]): boolean {
  const isOfSchema = tokens[tokens.indexOf(first) + 1] === "schema";
  return (first === "drop" || first === "alter") && isOfSchema && tokens.some((token) => bareName(token) === "daybook");
}

function kindMade(tokens: readonly string[]): string {
  const modifiers = new Set([
    "create",
    "or",
    "replace",
    "unique",
    "temp",
    "temporary",
    "constraint",
    "virtual",
    "explain",
  ]);
  return tokens.find((token) => !modifiers.has(token)) ?? "";
}

/** The name of a table, past its schema and its quotes. */
function tableAt(tokens: readonly string[], from: number): string | undefined {
  let at = from;
  while (fillers.has(tokens[at] ?? "")) at++;
  while (tokens[at + 1] === ".") at += 2;
  return bareName(tokens[at] ?? "");
}

function bareName(token: string): string {
  return token.replaceAll(/^["'`[]|["'`\]]$/g, "");
}

// SQLite carries out some pragmas while it prepares them, so what is only explained counts as well.
function firstWord(tokens: readonly string[]): string | undefined {
  if (tokens[0] !== "explain") return tokens[0];
  const rest = tokens.slice(1);
  const afterOptions = rest[0] === "(" ? rest.slice(rest.indexOf(")") + 1) : rest;
  return afterOptions.find((token) => !["query", "plan", "analyze", "analyse", "verbose"].includes(token));
}

// The body of a trigger is a list of statements up to its `end`.
function isOneStatement(tokens: readonly string[]): boolean {
  const end = tokens.at(-1) === ";" ? tokens.length - 1 : tokens.length;
  if (tokens[0] === "create" && tokens.slice(1, 3).includes("trigger") && tokens.includes("begin")) {
    return tokens[end - 1] === "end";
  }
  return !tokens.slice(0, end).includes(";");
}

/** The text without white space and comments, in lower case. */
function significantTokens(text: string): string[] {
  const tokens: string[] = [];
  for (let at = 0; at < text.length;) {
    const next = skipToken(text, at);
    const token = text.slice(at, next);
    at = next;
    const isComment = token.startsWith("--") || token.startsWith("/*");
    // PostgreSQL nests comments and ends a line at a carriage return, SQLite does neither: what one skips, the other runs.
    if (/^\/\*.*\/\*|^--.*\r(?!\n)/s.test(token)) {
      throw invalid(`the comment ${quoteSql(token)} means different things on SQLite and PostgreSQL: make it plain`);
    }
    // SQLite skips a byte order mark before a word.
    const bare = token.replaceAll("\uFEFF", "").trim();
    if (!isComment && bare !== "") tokens.push(bare.toLowerCase());
  }
  return tokens;
}

// Where the token that begins at `at` ends: white space, a comment, a quoted text, a word, or one other character. Words are those of
// the engines: everything beyond ASCII is a letter, and a dollar may stand in a word, so that `a$$` begins no text.
function skipToken(text: string, at: number): number {
  const char = text.charAt(at);
  if (char === "'" || char === '"' || char === "`") return endOfQuoted(text, at, char);
  if (char === "[") return endOfBrackets(text, at);
  if (text.startsWith("--", at)) return closing(text, at, "\n");
  if (text.startsWith("/*", at)) return closing(text, at + 2, "*/");
  const dollarTag = matchAt(/\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y, text, at);
  if (dollarTag !== "") return closing(text, at + dollarTag.length, dollarTag);
  const run = matchAt(/[ \t\n\v\f\r]+|\d+|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y, text, at);
  const end = at + Math.max(1, run.length);
  return run.toLowerCase() === "e" && text[end] === "'" ? endOfEscaped(text, end) : end;
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

/** The end of a text such as `E'it\'s'`, in which PostgreSQL lets a backslash escape the quote. It may go on in a new line. */
function endOfEscaped(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === "\\" || text.startsWith("''", end)) end++;
    else if (text[end] === "'") {
      const more = matchAt(/(?:[ \t\v\f]|--[^\n\r]*)*[\n\r](?:[ \t\n\v\f\r]|--[^\n\r]*[\n\r])*'/y, text, end + 1);
      if (more === "") return end + 1;
      end += more.length;
    }
  }
  return text.length;
}

/** SQLite reads a name in brackets up to the first that closes, PostgreSQL reads what is in them: both must end at the same. */
function endOfBrackets(text: string, at: number): number {
  const end = closing(text, at, "]");
  let inner = at + 1;
  while (inner < end - 1) inner = text[inner] === "[" ? inner + 1 : skipToken(text, inner);
  if (inner <= end - 1) return end;
  throw invalid(
    `the brackets ${quoteSql(text.slice(at, end))} mean different things on SQLite and PostgreSQL: give the text in them as a value`,
  );
}

function endOfQuoted(text: string, at: number, mark: string): number {
  let end = text.indexOf(mark, at + 1);
  while (end !== -1 && text[end + 1] === mark) end = text.indexOf(mark, end + 2);
  return end === -1 ? text.length : end + 1;
}

function closing(text: string, from: number, mark: string): number {
  const end = text.indexOf(mark, from);
  return end === -1 ? text.length : end + mark.length;
}

/** A statement for a message: on one line, and short. */
export function quoteSql(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return JSON.stringify(line.length > 80 ? `${line.slice(0, 79)}…` : line);
}
