// A condition as SQL. A leaf is true, or false or null, which count as the same; `not` turns both into true.
import { invalid } from "../../core/error.ts";
import { rawSql, sql, type Dialect, type Sql } from "../../storage/sql.ts";
import { anyOf } from "../../storage/word.ts";
import { samePath, type Index, type Path } from "../define/definition.ts";
import { hasItem } from "../indexes/declared-index.ts";
import { asOwn, endOf } from "./condition.ts";
import type { Condition, End, Leaf, Place, RelatedCondition, Scalar } from "./condition.ts";
import { beginning, beginningOf, columnTerm, fieldTerm, sqliteNumber, type Root, type Term } from "./term.ts";

/** What a place means: the columns of the record, and how to reach its endpoints. */
export type Scope = {
  readonly dialect: Dialect;
  readonly tenant: string;
  readonly typeSeq: number;
  /** The JSON to look into: the record's document, or an item in it. */
  readonly root: Root;
  /** The row with the columns `key`, `from_key` … of the record. */
  readonly record: Sql;
  readonly indexes: readonly Index[];
  /** The columns of endpoints that are read beside the record. */
  readonly ends: { readonly [end in End]?: (column: string) => Sql };
  /** Whether an endpoint of the record fits. */
  readonly endpoint: (end: End, where: Condition) => Sql;
  /** Whether enough is related to the record. */
  readonly related: (condition: RelatedCondition) => Sql;
  readonly names: { next: number };
};

export function compileCondition(scope: Scope, condition: Condition): Sql {
  const end = endOf(condition);
  if (end !== undefined && scope.ends[end] === undefined) return scope.endpoint(end, asOwn(condition));
  switch (condition.op) {
    case "and":
    case "or": {
      const apart = end === undefined ? together(condition.op, condition.of) : condition.of;
      const parts = apart.map((each) => compileCondition(scope, each));
      return condition.op === "and" ? joinWith(" and ", parts, "1 = 1") : joinWith(" or ", parts, "1 = 0");
    }
    case "not":
      return sql`(${compileCondition(scope, condition.of)}) is not true`;
    case "related":
      return scope.related(condition);
    case "any":
      if (isMember(scope, condition)) return hasItem(scope, condition.at.path, condition.where.value);
      return anyItem(scope, termAt(scope, condition.at), condition.where);
    default:
      return compareTerm(scope.dialect, termAt(scope, condition.at), condition);
  }
}

function compareTerm(dialect: Dialect, term: Term, condition: Exclude<Leaf, { readonly where: Condition }>): Sql {
  switch (condition.op) {
    case "eq":
      return equal(dialect, term, condition.value);
    case "ne":
      return sql`(${equal(dialect, term, condition.value)}) is not true`;
    case "in":
      return oneOf(dialect, term, condition.value);
    case "notIn":
      return sql`(${oneOf(dialect, term, condition.value)}) is not true`;
    case "isNull":
      return sql`(${isThere(term)}) is not true`;
    case "isNotNull":
      return isThere(term);
    case "startsWith":
    case "endsWith":
    case "contains":
      return textual(dialect, term, condition.op, condition.value);
    default:
      return ordered(dialect, term, condition.op, condition.value);
  }
}

/** The same conditions, those about one endpoint as one: its document is looked up once. */
function together(op: "and" | "or", conditions: readonly Condition[]): readonly Condition[] {
  const byEnd = Map.groupBy(conditions, endOf);
  const ends = (["from", "to"] as const).flatMap((end): Condition[] => {
    const of = byEnd.get(end) ?? [];
    return of.length === 0 ? [] : [{ op, of }];
  });
  return [...(byEnd.get(undefined) ?? []), ...ends];
}

const keyColumns = { key: "key", fromKey: "from_key", toKey: "to_key", instanceKey: "instance_key" } as const;

/** The term of a place of the record itself. */
export function termAt(scope: Scope, { side, path }: Place): Term {
  if (side in keyColumns) {
    const column = rawSql(keyColumns[side as keyof typeof keyColumns]);
    return columnTerm(scope.dialect, sql`${scope.record}.${column}`);
  }
  if (side !== "from" && side !== "to") return fieldTerm(scope.dialect, scope.root, path, isIndexed(scope, path));
  const column = scope.ends[side];
  if (column === undefined) throw invalid(`"${side}" is the end of a relation, and this is about something else`);
  return fieldTerm(scope.dialect, { column: column("body") }, path, false);
}

function isIndexed({ indexes }: Scope, path: Path): boolean {
  return indexes.some((index) => !index.each && samePath(index.path, path));
}

type Membership = Condition & { readonly op: "any"; readonly where: { readonly op: "eq"; readonly value: string } };

/** Whether an index answers the condition: it looks for a text in an array of the record's own document. */
function isMember({ indexes }: Scope, condition: Condition): condition is Membership {
  if (condition.op !== "any" || condition.at.side !== "value" || condition.where.op !== "eq") return false;
  const { at, where } = condition;
  if (where.at.path.length > 0 || typeof where.value !== "string") return false;
  return indexes.some((index) => index.each && samePath(index.path, at.path));
}

function isThere({ type }: Term): Sql {
  return sql`${type} <> 'null'`;
}

function equal(dialect: Dialect, term: Term, value: Scalar): Sql {
  if (typeof value !== "boolean") return ordered(dialect, term, "eq", value);
  if (dialect === "postgres") return sql`${term.json} = ${String(value)}::text::jsonb`;
  // The value comes first, because the index is on it.
  return sql`(${term.value} = ${value ? 1 : 0} and ${term.type} = ${rawSql(value ? "'true'" : "'false'")})`;
}

const signs = { eq: "=", lt: "<", lte: "<=", gt: ">", gte: ">=" } as const;

function ordered(dialect: Dialect, term: Term, op: keyof typeof signs, value: string | number): Sql {
  const sign = rawSql(signs[op]);
  if (dialect === "sqlite") {
    return typeof value === "string"
      ? sql`(${term.value} ${sign} ${value} and ${term.type} = 'text')`
      : sql`(${term.value} ${sign} ${sqliteNumber(value)} and ${term.type} in ('integer', 'real'))`;
  }
  if (typeof value === "number") return sql`${term.number} ${sign} ${value}::numeric`;
  if (!term.indexed) return sql`${term.text} ${sign} ${value}::text`;
  // The beginnings of two texts are in the same order as the texts, or equal.
  const loose = rawSql(op === "lt" ? "<=" : op === "gt" ? ">=" : signs[op]);
  return sql`(${beginningOf(term)} ${loose} ${beginning(value)}::text and ${term.text} ${sign} ${value}::text)`;
}

function oneOf(dialect: Dialect, term: Term, values: readonly Scalar[]): Sql {
  const texts = values.filter((value) => typeof value === "string");
  const numbers = values.filter((value) => typeof value === "number");
  const parts: Sql[] = [];
  if (texts.length > 0) parts.push(oneOfTexts(dialect, term, texts));
  if (numbers.length > 0) {
    parts.push(
      dialect === "sqlite"
        ? sql`(${term.value} ${anyOf("real", numbers)} and ${term.type} in ('integer', 'real'))`
        : sql`${term.number} = any(array(select value::numeric
            from jsonb_array_elements_text(${JSON.stringify(numbers)}::text::jsonb) as list(value)))`,
    );
  }
  for (const value of new Set(values.filter((each) => typeof each === "boolean")))
    parts.push(equal(dialect, term, value));
  return joinWith(" or ", parts, "1 = 0");
}

function oneOfTexts(dialect: Dialect, term: Term, texts: readonly string[]): Sql {
  if (dialect === "sqlite") return sql`(${term.value} ${anyOf("text", texts)} and ${term.type} = 'text')`;
  const exact = sql`${term.text} ${anyOf("text", texts)}`;
  return term.indexed ? sql`(${beginningOf(term)} ${anyOf("text", texts.map(beginning))} and ${exact})` : exact;
}

// Not LIKE, whose metacharacters need escaping and which ignores the case of some letters on SQLite.
function textual(dialect: Dialect, term: Term, op: "startsWith" | "endsWith" | "contains", value: string): Sql {
  const isText = dialect === "sqlite" ? sql`${term.type} = 'text'` : sql`${term.text} is not null`;
  if (value === "") return isText;
  const letters = Array.from(value).length;
  const text = dialect === "sqlite" ? term.value : term.text;
  if (op === "contains") {
    return dialect === "sqlite"
      ? sql`(${isText} and instr(${text}, ${value}) > 0)`
      : sql`strpos(${text}, ${value}::text) > 0`;
  }
  if (op === "endsWith") {
    return dialect === "sqlite"
      ? sql`(${isText} and substr(${text}, -${rawSql(String(letters))}) = ${value})`
      : sql`right(${text}, ${rawSql(String(letters))}) = ${value}::text`;
  }
  const after = afterPrefix(value);
  const from = ordered(dialect, term, "gte", value);
  const range = after === undefined ? from : sql`(${from} and ${ordered(dialect, term, "lt", after)})`;
  return dialect === "sqlite"
    ? sql`(${range} and substr(${text}, 1, ${rawSql(String(letters))}) = ${value})`
    : sql`(${range} and starts_with(${text}, ${value}::text))`;
}

/** The first text after all that begin with `prefix`, by code point; undefined when there is none. */
function afterPrefix(prefix: string): string | undefined {
  const letters = Array.from(prefix);
  for (let last = letters.pop(); last !== undefined; last = letters.pop()) {
    const code = last.codePointAt(0) ?? 0;
    if (code < 0x10ffff) return letters.join("") + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1);
  }
  return undefined;
}

function anyItem(scope: Scope, term: Term, where: Condition): Sql {
  const item = rawSql(`item${scope.names.next++}`);
  const inner: Scope = { ...scope, root: { column: sql`${item}.value`, item }, indexes: [] };
  const fits = compileCondition(inner, where);
  return scope.dialect === "sqlite"
    ? sql`exists (select 1 from json_each(case when ${term.type} = 'array' then ${term.raw} end) as ${item} where ${fits})`
    : sql`exists (select 1 from jsonb_array_elements(case ${term.type} when 'array' then ${term.json} end) as ${item}(value) where ${fits})`;
}

// By halves, because a chain is as deep as it is long, and SQLite refuses a tree of a thousand levels.
function joinWith(word: string, parts: readonly Sql[], none: string): Sql {
  const [only] = parts;
  if (only === undefined) return rawSql(none);
  if (parts.length === 1) return sql`(${only})`;
  const half = Math.ceil(parts.length / 2);
  return sql`(${joinWith(word, parts.slice(0, half), none)}${rawSql(word)}${joinWith(word, parts.slice(half), none)})`;
}
