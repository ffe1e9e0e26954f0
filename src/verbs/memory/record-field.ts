// Fields about records: which one, which of them, and as of when.
import type { AsOf, Condition, RelationKey } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { parseJson } from "../../core/parse-json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import type { AnyRecordType } from "../../records/define/definition.ts";
import { checkCondition, type Place, type Side } from "../../records/query/condition.ts";
import { list, maybe, text, time, whole, type Field } from "../field.ts";

export const type = text("the name of the type", "name");

export const key = list(text("its key; of a relation: from, to and, if it has one, its instance", "key"), { max: 3 });

/** What a commit says of itself, and when it is not to be made. */
export const notes = {
  actor: maybe(text("who makes the commit", "who")),
  reason: maybe(text("why it is made", "why", limits.commitReasonBytesMax)),
};

export const ifRevision = maybe(whole("only if this is still its revision", 1, 1_000_000_000_000));

/** A commit or a time. */
export function moment(about: string): Field<string, false> {
  const of = text(about, "moment");
  return {
    ...of,
    check(value, what) {
      of.check(value, what);
      if (!isCommit(String(value))) time(about).check(value, what);
    },
  };
}

export const asOf = maybe(moment("as it was known at a commit (its number) or a time"));

export function readMoment(given: string): AsOf {
  return isCommit(given) ? Number(given) : given;
}

function isCommit(given: string): boolean {
  return /^\d{1,15}$/.test(given);
}

/** `status eq "paid"`: a path, a word and, for most words, a value in JSON. */
export function condition(about: string): Field<string, false> {
  const of = text(about, "path op json", limits.questionBytesMax);
  return {
    ...of,
    check(value, what) {
      of.check(value, what);
      readCondition(String(value), what);
    },
  };
}

export const filters = maybe(
  list(condition("only records for which this holds; may be given several times"), {
    one: "filter",
    max: limits.conditionsMax,
  }),
);

/** Words that take no value. */
const alone = ["isNull", "isNotNull"];

export function readCondition(given: string, what = "the filter"): Condition {
  const [, path, op, value] =
    /^((?:from:|to:)?(?:\[[^]*?\](?=\s)|\S+))\s+(\w+)(?:\s+([^]+))?$/.exec(given.trim()) ?? [];
  if (path === undefined || op === undefined) {
    throw invalid(`${what} is ${quote(given)}: give a path, a word and a value in JSON, such as status eq "paid"`);
  }
  const at = readPlace(path);
  if (alone.includes(op)) {
    if (value !== undefined) throw invalid(`${what} is ${quote(given)}: ${op} takes no value`);
    return checkCondition({ op, at });
  }
  if (value === undefined) throw invalid(`${what} is ${quote(given)}: it lacks a value in JSON`);
  return checkCondition({ op, at, value: parseJson(value, { what: `the value of ${what}` }) });
}

const keys: ReadonlyMap<string, Side> = new Map([
  ["@key", "key"],
  ["@from", "fromKey"],
  ["@to", "toKey"],
  ["@instance", "instanceKey"],
]);

/** `address.city`, `["a.b", "c"]`, `from:country`, or `@key`. */
export function readPlace(given: string): Place {
  const side = keys.get(given);
  if (side !== undefined) return { side, path: [] };
  const [, end, rest = given] = /^(from|to):(.*)$/s.exec(given) ?? [];
  const path: unknown = rest.startsWith("[") ? parseJson(rest, { what: "the path" }) : rest.split(".");
  return { side: end === "from" || end === "to" ? end : "value", path: path as string[] };
}

/** A key of an entity, or from, to and perhaps the instance of a relation. */
export function readKey({ kind, name }: AnyRecordType, words: readonly string[]): string | RelationKey {
  const [first = "", second, instance] = words;
  if (kind === "entity") {
    if (words.length !== 1) throw invalid(`"${name}" is an entity: give one key`);
    return first;
  }
  if (second === undefined) {
    throw invalid(`"${name}" is a relation: give from, to and, if it has one, its instance`);
  }
  return instance === undefined ? { from: first, to: second } : { from: first, to: second, instance };
}
