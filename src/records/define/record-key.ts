// The key of a record, and the document that gives it. An entity has a key of its own; that of a relation is made of its
// endpoints and its instance.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { systemClock } from "../../core/clock.ts";
import { invalid, itemOf, notFound, type DaybookError } from "../../core/error.ts";
import { isObject, isThenable, toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { checkKey } from "../../core/name.ts";
import { quote } from "../../core/quote.ts";
import { fitting } from "../../core/standard-schema.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { pace } from "../../storage/slices.ts";
import { checkDefinition } from "./definition.ts";
import type { AnyRecordType, RelationKey } from "./definition.ts";

export type Ends = { readonly from: string; readonly to: string; readonly instance: string };
export type RecordKey = { readonly key: string; readonly ends: Ends | null };

/** Checks a given key against the kind of its type. */
export function recordKey(type: AnyRecordType, given: string | RelationKey): RecordKey {
  if (checkDefinition(type, "the type of a record").kind === "entity")
    return { key: entityKey(given, `the key of "${type.name}"`), ends: null };
  if (typeof given !== "object" || given === null) {
    throw invalid(`a "${type.name}" is found by its endpoints: give { from, to }, and instance where it has one`);
  }
  refuseUnknown(given, ["from", "to", "instance"], `the key of "${type.name}"`);
  return relationKey(type.name, { from: given.from, to: given.to, instance: given.instance ?? "" });
}

function entityKey(given: unknown, what: string): string {
  if (typeof given !== "string") throw invalid(`${what} is ${quote(given)}: a key is a text`);
  if (given.trim() === "") throw invalid(`${what} is blank: give it at least one letter`);
  return checkKey(given, what);
}

function relationKey(name: string, ends: Ends): RecordKey {
  entityKey(ends.from, `"from" of "${name}"`);
  entityKey(ends.to, `"to" of "${name}"`);
  if (typeof ends.instance !== "string") throw invalid(`the instance of "${name}" is not a text`);
  if (ends.instance !== "") checkKey(ends.instance, `the instance of "${name}"`);
  const key = JSON.stringify([ends.from, ends.to, ends.instance]);
  const bytes = Buffer.byteLength(key);
  if (bytes > limits.relationKeyBytesMax) {
    throw invalid(`the keys of a "${name}" are ${bytes} bytes together: at most ${limits.relationKeyBytesMax}`);
  }
  return { key, ends };
}

/** For messages: `order "o-17"`, `placed from "ada" to "o-17"`. */
export function nameRecord(type: string, { key, ends }: RecordKey): string {
  if (ends === null) return `${type} ${JSON.stringify(key)}`;
  const instance = ends.instance === "" ? "" : ` (${JSON.stringify(ends.instance)})`;
  return `${type} from ${JSON.stringify(ends.from)} to ${JSON.stringify(ends.to)}${instance}`;
}

export function noRecord(type: string, at: RecordKey): DaybookError {
  return notFound(`there is no ${nameRecord(type, at)}`, { type, key: at.ends ?? at.key });
}

/** A document that its schema has checked, and its canonical JSON: equal documents have equal text. */
export type Document = { readonly value: unknown; readonly body: string };

export async function checkDocument(type: AnyRecordType, input: unknown): Promise<Document> {
  return beginCheck(type, input);
}

/** Checks all of a list. Most schemas answer at once, and then nothing is waited for. */
export async function checkDocuments(type: AnyRecordType, inputs: readonly unknown[]): Promise<readonly Document[]> {
  const documents: Document[] = [];
  const later: Promise<unknown>[] = [];
  const turn = pace();
  for (const [index, input] of inputs.entries()) {
    try {
      const checked = beginCheck(type, input);
      if (!isThenable(checked)) {
        documents[index] = checked;
        await turn(checked.body);
      } else later.push(checked.then((document) => (documents[index] = document), itemOf("document", index)));
    } catch (error) {
      await Promise.allSettled(later);
      itemOf("document", index)(error);
    }
  }
  await Promise.all(later);
  return documents;
}

function beginCheck(type: AnyRecordType, input: unknown): Document | Promise<Document> {
  const { name, schema } = type;
  if (schema === undefined) return toDocument(name, checkEmpty(name, input));
  const checked = schema["~standard"].validate(input);
  const fit = (result: StandardSchemaV1.Result<unknown>): Document => {
    const what = `the document does not fit the schema of "${name}"`;
    return toDocument(name, fitting(result, what, { type: name }));
  };
  if (isThenable(checked)) return Promise.resolve(checked).then(fit);
  return isWide(input) ? systemClock.nextTurn().then(() => fit(checked)) : fit(checked);
}

/** To check so many fields takes the loop milliseconds, and to write them as many again: it has a turn in between. */
const wideFields = 5000;

function isWide(input: unknown): boolean {
  return isObject(input) && Object.keys(input).length > wideFields;
}

function toDocument(name: string, value: unknown): Document {
  if (!isObject(value)) throw invalid(`a document of "${name}" must be an object with named fields`);
  return { value, body: toJson(value, { what: name }) };
}

function checkEmpty(name: string, input: unknown): unknown {
  if (input === undefined || (typeof input === "object" && input !== null && Object.keys(input).length === 0))
    return {};
  throw invalid(`"${name}" has no schema, so it knows nothing but its endpoints: give it a schema to keep more`);
}

/** The key that the document gives to its record. A relation's key is also made of its ends. */
export function keyOf(type: AnyRecordType, { value }: Document, ends: Omit<Ends, "instance"> | null): RecordKey {
  if (type.kind === "entity") return { key: entityKey(type.keyOf(value), `the key of "${type.name}"`), ends: null };
  const { from, to } = ends ?? { from: "", to: "" };
  const instance =
    type.instanceOf === undefined ? "" : entityKey(type.instanceOf(value), `the instance of "${type.name}"`);
  return relationKey(type.name, { from, to, instance });
}
