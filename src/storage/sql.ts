// One text for both back ends. A statement is written once, as a tagged template, in the function that runs it:
//
//   sql`update daybook_job set status = 'queued' where seq ${anyOf("integer", seqs)} and tenant_id = ${tenant}`
//
// Values become parameters. What the engines spell differently comes from the closed list in word.ts. Where two
// statements truly differ, the caller writes both side by side and chooses by `tx.dialect`, with the reason above.
import { invalid } from "../core/error.ts";
import type { Part } from "./word.ts";

export type Dialect = "sqlite" | "postgres";

/** What a statement may carry. Times are integers, JSON is text: rooms convert before they bind. */
export type Value = string | number | bigint | boolean | null | Uint8Array;

/** What is known of a user's own statement: `leaves` when it may leave something behind in its session, and the `indexes` that
 *  it drops or alters, whose names do not say whose they are. */
export type UserMark = { readonly leaves: boolean; readonly indexes: readonly string[] };

/** A statement that has not been rendered for an engine yet. Only the functions of the house make one: an object that came in
 *  from elsewhere may say that it is one, and is refused as a value. */
export class Sql {
  readonly kind = "sql";
  readonly strings: readonly string[];
  readonly values: readonly Slot[];
  /** Set by `rowsInto`: the text is all there, and runs once for each of these rows. */
  readonly rows: readonly (readonly Value[])[] | undefined;
  /** Set when it is a user's own. */
  readonly user: UserMark | undefined;
  /** Set when a query builder made it for this engine: the text is all there, and these are the values of its marks. */
  readonly built: Built | undefined;
  // oxlint-disable-next-line no-unused-private-class-members -- `isOne` asks whether it is there
  readonly #made = true;

  constructor(
    strings: readonly string[],
    values: readonly Slot[],
    rows?: readonly (readonly Value[])[],
    user?: UserMark,
    built?: Built,
  ) {
    this.strings = strings;
    this.values = values;
    this.rows = rows;
    this.user = user;
    this.built = built;
  }

  static isOne(value: object): value is Sql {
    return #made in value;
  }
}
type Slot = Value | Sql | Part;

export type Built = {
  readonly params: readonly Value[];
  /** PostgreSQL: the builder reads times and large numbers from their text itself. */
  readonly raw: boolean;
};

/** What a built statement answers, as its one row: lists of values, because two columns of a join may have one name. */
export type BuiltAnswer = {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** How many rows it answers or, if it answers none, changed. */
  readonly count: number;
  /** SQLite: the row that the connection inserted last, when the statement answers no rows. */
  readonly insertedLast?: number | bigint;
};

/** A rendered statement: a plain value, so it can be sent to another thread. */
export type Query = {
  readonly text: string;
  readonly params: readonly Value[];
  /** Set when the statement inserts many rows and the engine (SQLite) runs it once per row; `params` is then empty. */
  readonly rows?: readonly (readonly Value[])[];
  readonly user?: UserMark;
  /** Set when it was built: its answer is one `BuiltAnswer`. */
  readonly built?: Built;
};

export function sql(strings: TemplateStringsArray, ...values: Slot[]): Sql {
  return new Sql(strings, values);
}

/** Text that is already SQL: migrations and tests use it. Never give it anything a user typed. */
export function rawSql(text: string): Sql {
  return new Sql(Object.freeze([text]), []);
}

/** Parts one after the other, as one: for conditions that are there or not. `between` stands between two of them. */
export function joinSql(parts: readonly Sql[], between?: string): Sql {
  const isLast = (index: number): boolean => index === parts.length - 1;
  return new Sql(Object.freeze(["", ...parts.map((_, index) => (isLast(index) ? " " : (between ?? " ")))]), parts);
}

// Templates whose slots are all plain values always render to the same text, so it is kept per template.
const plainTexts: Record<Dialect, WeakMap<readonly string[], string>> = {
  sqlite: new WeakMap(),
  postgres: new WeakMap(),
};

export function render(statement: Sql, dialect: Dialect): Query {
  const query = rendered(statement, dialect);
  return statement.user === undefined ? query : { ...query, user: statement.user };
}

function rendered(statement: Sql, dialect: Dialect): Query {
  const { built } = statement;
  if (built !== undefined) return { text: statement.strings[0] ?? "", params: built.params, built };
  if (statement.rows !== undefined) return { text: statement.strings[0] ?? "", params: [], rows: statement.rows };
  const known = plainTexts[dialect].get(statement.strings);
  if (known !== undefined && statement.values.every(isValue)) {
    return { text: known, params: statement.values.map(checkValue) };
  }
  const out: Rendering = { dialect, text: "", params: [], rows: undefined };
  append(out, statement);
  if (statement.values.every(isValue)) plainTexts[dialect].set(statement.strings, out.text);
  return out.rows ? { text: out.text, params: out.params, rows: out.rows } : { text: out.text, params: out.params };
}

/** What a part of a statement writes into while the statement is rendered. */
export type Rendering = {
  readonly dialect: Dialect;
  text: string;
  readonly params: Value[];
  rows: readonly (readonly Value[])[] | undefined;
  /** Set by the part that brings many rows: nothing else in the statement may have a value then. */
  filled?: boolean;
};

function append(out: Rendering, statement: Sql): void {
  for (let index = 0; index < statement.strings.length; index++) {
    const before = statement.strings[index] ?? "";
    out.text += before;
    if (index >= statement.values.length) continue;
    const slot = statement.values[index] as Slot;
    if (isValue(slot)) {
      // SQLite plans anew for every value of a bare mark behind `limit`, which takes longer than a claim of one job.
      if (out.dialect === "sqlite" && before.endsWith("limit ")) out.text += "+";
      bind(out, slot);
    } else if (slot.kind === "sql") append(out, slot);
    else slot.render(out);
  }
}

export function bind(out: Rendering, value: Value): void {
  out.text += pushParam(out, checkValue(value));
}

/** Adds a checked parameter and returns its mark. It does not look at the text: each look would copy all of it, and a statement
 *  of thousands of parameters held the loop for 10 ms. */
export function pushParam(out: Rendering, value: Value): string {
  if (out.filled === true) throw invalid("eachRow must be the only source of values in its statement");
  out.params.push(value);
  return out.dialect === "postgres" ? `$${out.params.length}` : "?";
}

// A part is made by code: an object that came in as JSON may claim to be one, but it holds no function.
function isValue(slot: Slot): slot is Value {
  if (typeof slot !== "object" || slot === null || !("kind" in slot)) return true;
  if (slot.kind === "sql") return !Sql.isOne(slot);
  return typeof slot.render !== "function";
}

// node:sqlite takes an object silently as named parameters and PostgreSQL refuses U+0000 with an obscure message, so
// every parameter passes here before either engine sees it.
export function checkValue(value: Value): Value {
  switch (typeof value) {
    case "string":
      if (value.includes("\0")) throw invalid(`text for SQL contains U+0000: ${JSON.stringify(value.slice(0, 80))}`);
      // Both engines would store U+FFFD in its place and say nothing.
      if (!value.isWellFormed()) throw invalid("text for SQL has a lone surrogate: clean it with text.toWellFormed()");
      return value;
    case "number":
      if (!Number.isFinite(value)) throw invalid(`${value} cannot be stored: use null or a finite number`);
      return value;
    case "bigint":
    case "boolean":
      return value;
    case "undefined":
      throw invalid("undefined was given to SQL: use null for a missing value");
    default:
      if (value === null || value instanceof Uint8Array) return value;
      throw invalid(
        `${Object.prototype.toString.call(value)} cannot be given to SQL: pass text, a number, null or bytes ` +
          "(dates as epoch milliseconds, objects and lists as JSON text)",
      );
  }
}
