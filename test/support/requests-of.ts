// Requests that fast-check makes from a document of OpenAPI: fields that fit their schemas, fields at their bounds and beyond, and what
// is no field at all.
import type { Schema } from "../../src/verbs/field.ts";
import { resolve } from "./json-schema.ts";
import { fc } from "./property.ts";

export type Operation = { readonly path: string; readonly method: string; readonly said: Schema };

export type Fuzzed = {
  readonly operation: Operation;
  readonly url: string;
  readonly init: { readonly headers: Record<string, string>; readonly body?: string | Uint8Array };
};

export type Pool = {
  readonly document: Schema;
  /** What things are called, by the noun of their verbs and by the names of fields, so that some requests find them. */
  readonly known: Readonly<Record<string, readonly string[]>>;
  readonly tokens: readonly string[];
};

type Parameter = { readonly name: string; readonly in: string; readonly required?: true; readonly schema?: Schema };

/** Where a value stands: what fits there is more likely than anything else that has a name. */
type Place = Pool & { readonly name: string; readonly near: readonly string[] };

function at(place: Place, name: string): Place {
  return { ...place, name, near: place.known[name] ?? place.near };
}

export function requestOf(operations: readonly Operation[], given: Pool): fc.Arbitrary<Fuzzed> {
  return fc.constantFrom(...operations).chain((operation) => {
    const { said, path } = operation;
    const pool = at(
      { ...given, name: "", near: Object.values(given.known).flat() },
      String((said["tags"] as string[])[0]),
    );
    const parameters = ((said["parameters"] ?? []) as (Parameter & { $ref?: string })[]).filter(
      ({ $ref }) => $ref === undefined,
    );
    const of = (place: string): Parameter[] => parameters.filter((each) => each.in === place);
    const { content = {} } = (said["requestBody"] ?? {}) as { content?: Record<string, { schema: Schema }> };
    return fc
      .record({
        inPath: fc.tuple(...of("path").map(({ name, schema = {} }) => pathPart(schema, at(pool, name)))),
        query: fc.tuple(...of("query").map((each) => queryPart(each, pool))),
        more: fc.oneof(
          { weight: 20, arbitrary: fc.constant("") },
          { weight: 1, arbitrary: fc.constantFrom(...strangeQueries) },
        ),
        body: bodyOf(content["application/json"]?.schema, pool),
        headers: headersOf(said, pool),
      })
      .map(({ inPath, query, more, body, headers }): Fuzzed => {
        const parts = [...inPath];
        const filled = path.replaceAll(/\{\w+\}/g, () => String(parts.shift() ?? ""));
        const asked = [...query.flat(), ...(more === "" ? [] : [more])].join("&");
        const sent = operation.method === "GET" || body === undefined ? {} : { body: body.text };
        const type = "body" in sent && body !== undefined ? { "content-type": body.type } : {};
        const url = `${filled}${asked === "" ? "" : `?${asked}`}`;
        return { operation, url, init: { headers: { ...headers, ...type }, ...sent } };
      });
  });
}

/** An object whose own field is called as the prototype is. */
const proto: unknown = JSON.parse('{"__proto__": {"a": 1}, "constructor": {}}');
const strange: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e308,
    Number.MAX_SAFE_INTEGER,
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udc00a",
    "\u202e",
  ],
  ...[
    "__proto__",
    "constructor",
    "toString",
    "x".repeat(10_000),
    "ä".repeat(300),
    "😀".repeat(200),
    "'; drop table a; --",
  ],
  ...["%", "_", "../../etc", "a/b", "a b", "\r\nx: y", "NaN", "null", "9".repeat(400), "-0", [], {}, [null], [[[[]]]]],
  ...[
    proto,
    { a: proto },
    nested(70),
    "2026-13-01T00:00:00Z",
    "9999-12-31T23:59:59.999Z",
    "-1s",
    "1e9d",
    "*",
    ">",
    "a..b",
  ],
];
const strangeQueries = [
  "limit=1&limit=2",
  "limit=501",
  "limit=0",
  "after=eyJhIjoxfQ",
  "after=%00",
  "__proto__=1",
  "nobody=1",
  "=",
  "&&",
  "%",
  "a[]=1",
];
const strangeParts = [
  "%00",
  "%2F",
  "..%2F..",
  "%zz",
  "%",
  "%ED%A0%80",
  "%E2%80%AE",
  "a%0D%0Ab",
  "%5C",
  ";",
  "x".repeat(600),
  "__proto__",
];
const utf8 = new TextEncoder();
const strangeBodies: readonly (string | Uint8Array)[] = [
  ...[
    "",
    "[",
    "null",
    "[]",
    '"x"',
    "1",
    "{",
    '{"a":1,"a":2}',
    '{"__proto__":{"name":"a"}}',
    "[".repeat(10_000),
    "{}x",
    "\ufeff{}",
  ],
  ...['{"a":'.repeat(10_000), '{"name":"\\ud800"}', '{"name":"\\u0000"}', '{"name": 1e999}', " ".repeat(2_200_000)],
  ...[Uint8Array.of(0xff, 0xfe, 0x7b), Uint8Array.of(0x7b, 0x22, 0xc0, 0x80, 0x22, 0x7d), utf8.encode("{}")],
];

function nested(depth: number): unknown {
  return Array.from({ length: depth }).reduce<unknown>((within) => ({ a: within }), 1);
}

function pathPart(schema: Schema, pool: Place): fc.Arbitrary<string> {
  const text = valueOf(schema, pool).map((value) => encodeURIComponent(String(value).toWellFormed()) || "x");
  return fc.oneof({ weight: 8, arbitrary: text }, { weight: 1, arbitrary: fc.constantFrom(...strangeParts) });
}

function queryPart({ name, required, schema = {} }: Parameter, pool: Place): fc.Arbitrary<string[]> {
  const given = valueOf(schema, at(pool, name)).map((value) => {
    const texts = Array.isArray(value) ? value : [value];
    return texts.map((each) => `${name}=${encodeURIComponent(textOf(each).toWellFormed())}`);
  });
  return orNothing(given, required === true, name);
}

/** What is needed is seldom left out, and what is not is seldom given. */
function orNothing<T>(given: fc.Arbitrary<T[]>, isNeeded: boolean, name: string): fc.Arbitrary<T[]> {
  // Without it some wait for as long as they may.
  if (name === "timeout") return given;
  const nothing = fc.constant<T[]>([]);
  return fc.oneof({ weight: isNeeded ? 20 : 8, arbitrary: given }, { weight: isNeeded ? 1 : 20, arbitrary: nothing });
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

type Body = { readonly text: string | Uint8Array; readonly type: string };

function bodyOf(schema: Schema | undefined, pool: Place): fc.Arbitrary<Body | undefined> {
  const fields = schema === undefined ? fc.constant({}) : valueOf(schema, pool);
  const type = fc.oneof(
    { weight: 30, arbitrary: fc.constant("application/json") },
    {
      weight: 1,
      arbitrary: fc.constantFrom("text/plain", "application/json; charset=utf-16", "application/xml", "*/*"),
    },
  );
  const text = fc.oneof(
    { weight: 20, arbitrary: fields.map((value) => JSON.stringify(value) ?? "") },
    { weight: 1, arbitrary: fields.map((value) => JSON.stringify({ ...(value as object), nobody: 1 })) },
    { weight: 1, arbitrary: fc.constantFrom(...strangeBodies) },
  );
  return fc.option(fc.record({ text, type }), { freq: 30, nil: undefined });
}

function headersOf(said: Schema, { tokens }: Pool): fc.Arbitrary<Record<string, string>> {
  const [book = "", worker = ""] = [tokens.at(-1), tokens.at(-2)];
  const usual = said["x-daybook-role"] === "worker" ? worker : book;
  const bearer = (token: string): string => `Bearer ${token}`;
  const authorization = fc.oneof(
    { weight: 20, arbitrary: fc.constant(bearer(usual)) },
    { weight: 3, arbitrary: fc.constantFrom(...tokens.map(bearer)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("", "Bearer", "Basic eDp5", `Bearer ${book}, Bearer ${book}`, "Bearer dbk_x"),
    },
  );
  const sometimes = (...values: string[]): fc.Arbitrary<string | undefined> =>
    fc.oneof({ weight: 30, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...values) });
  return fc
    .record({
      authorization,
      "idempotency-key": sometimes("k-1", "k-2", "a b", "x".repeat(256)),
      "if-match": sometimes('"1"', '"2"', "*", 'W/"1"', "1", '"99999999999999999"'),
      "if-none-match": sometimes('"1"', "*", 'W/"x"'),
      "daybook-tenant": sometimes("default", "acme", "__proto__", " ", "x".repeat(300), "\u00e4"),
      "last-event-id": sometimes("0", "x", "-1", "9".repeat(30)),
      origin: sometimes("http://127.0.0.1", "https://evil.example", "null"),
      host: sometimes("127.0.0.1", "evil.example"),
    })
    .map((headers) => Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as never);
}

/** A value of the schema, one at its bounds or beyond them, or one of another kind. */
function valueOf(schema: Schema, pool: Place): fc.Arbitrary<unknown> {
  if (pool.name === "timeout" || pool.name === "wait") return atOnce(schema);
  return fc.oneof(
    { weight: 30, arbitrary: fitting(schema, pool) },
    { weight: 1, arbitrary: atBounds(schema, pool) },
    { weight: 1, arbitrary: fc.constantFrom(...strange) },
  );
}

// Nobody waits for long: a thousand requests would otherwise take hours.
function atOnce({ type }: Schema): fc.Arbitrary<unknown> {
  return type === "boolean" ? fc.boolean() : fc.constantFrom("0s", "1ms", "5ms");
}

function fitting(schema: Schema, pool: Place): fc.Arbitrary<unknown> {
  const {
    $ref,
    anyOf,
    enum: words,
    type,
    items = {},
  } = schema as {
    readonly $ref?: string;
    readonly anyOf?: readonly Schema[];
    readonly enum?: readonly unknown[];
    readonly type?: string;
    readonly items?: Schema;
  };
  if ($ref !== undefined) return fitting(resolve($ref, pool.document), pool);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((each) => fitting(each, pool)));
  if (words !== undefined) return fc.constantFrom(...words);
  switch (type) {
    case "string":
      return textOfSchema(schema, pool);
    case "integer":
    case "number":
      return fc.integer({ min: Number(schema["minimum"] ?? 0), max: Math.min(Number(schema["maximum"] ?? 100), 1000) });
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(valueOf(items, pool), { maxLength: 3 });
    case "object":
      return objectOf(schema, pool);
    default:
      return fc.oneof(fc.constantFrom({}, { id: "my-1", text: "one" }, { why: "so" }), fc.jsonValue({ maxDepth: 3 }));
  }
}

function textOfSchema(
  { format, pattern, minLength, maxLength }: Schema,
  { known, near }: Place,
): fc.Arbitrary<unknown> {
  if (format === "date-time") {
    const dates = fc.date({ min: new Date("1970-01-01"), max: new Date("2100-01-01"), noInvalidDate: true });
    return dates.map((each) => each.toJSON());
  }
  if (pattern !== undefined) return fc.constantFrom("0s", "1ms", "20ms", "1s", "5m", "1h30m", "7d", "52w");
  const [least, most] = [Number(minLength ?? 0), Math.min(Number(maxLength ?? 30), 30)];
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...near) },
    { weight: 1, arbitrary: fc.constantFrom(...Object.values(known).flat()) },
    { weight: 1, arbitrary: fc.string({ minLength: least, maxLength: most, unit: "grapheme" }) },
  );
}

function objectOf(schema: Schema, pool: Place): fc.Arbitrary<unknown> {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
  };
  const fields = Object.entries(properties).map(([name, each]) => {
    const given = valueOf(each, at(pool, name)).map((value): [string, unknown][] => [[name, value]]);
    return orNothing(given, required.includes(name), name);
  });
  return fc.tuple(...fields).map((entries) => Object.fromEntries(entries.flat()));
}

function atBounds(schema: Schema, pool: Place): fc.Arbitrary<unknown> {
  const {
    minimum,
    maximum,
    minLength,
    maxLength,
    maxItems,
    items = {},
  } = schema as {
    readonly [bound in "minimum" | "maximum" | "minLength" | "maxLength" | "maxItems"]?: number;
  } & { readonly items?: Schema };
  const numbers = [minimum, maximum].flatMap((bound) => (bound === undefined ? [] : [bound - 1, bound, bound + 1]));
  const lengths = [minLength, maxLength].flatMap((bound) => (bound === undefined ? [] : [bound - 1, bound, bound + 1]));
  const texts = lengths.map((length) => "a".repeat(Math.max(0, length)));
  if (numbers.length + texts.length > 0) return fc.constantFrom<unknown>(...numbers, ...texts);
  if (maxItems === undefined) return fitting(schema, pool);
  return fitting(items, pool).map((each) => Array.from({ length: maxItems + 1 }, () => each));
}
