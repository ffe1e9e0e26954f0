import assert from "node:assert/strict";
import { test } from "node:test";
import { isoTime } from "../../src/core/time.ts";
import type { Schema } from "../../src/verbs/field.ts";
import made from "../../src/verbs/outputs.json" with { type: "json" };
import { everyVerb } from "../../src/verbs/table.ts";
import { fromWire, toWire, type Outputs } from "../../src/verbs/wire.ts";
import { fc } from "../support/property.ts";

const { outputs, defs } = made as unknown as Outputs;

for (const [key] of await everyVerb()) {
  const schema = outputs[key] ?? assert.fail(key);

  test(`what ${key} answers is the same after the wire and back, whichever way it went first`, () => {
    fc.assert(
      fc.property(answers(schema, "wire"), (answer) => {
        assert.deepEqual(toWire(fromWire(answer, schema, defs), schema, defs), answer);
      }),
      { numRuns: 50 },
    );
    fc.assert(
      fc.property(answers(schema, "library"), (answer) => {
        assert.deepEqual(fromWire(toWire(answer, schema, defs), schema, defs), answer);
      }),
      { numRuns: 50 },
    );
  });
}

test("times are numbers again where the schema has them, and a text of the user's that looks like one stays", () => {
  const at = "1970-01-01T00:00:00.001Z";
  const job = { id: at, createdAt: at, startedAt: null, params: { createdAt: at }, run: { endedAt: at } };

  const read = fromWire({ items: [job], next: null }, outputs["jobs.list"], defs);

  assert.deepEqual(read, { items: [{ ...job, createdAt: 1, run: { endedAt: 1 } }], next: null });
});

test("of an answer with several shapes the times of each are read", () => {
  const when = isoTime(5);
  const place = { id: "a", status: "queued", waitsFor: null, place: 1, of: 2, startsAt: when };
  const shape = (name: string): Schema => ({
    type: "object",
    properties: { at: { type: "number", "x-time": "epoch-ms" }, [name]: { type: "number", "x-time": "epoch-ms" } },
    required: ["at", name],
  });

  assert.deepEqual(fromWire(place, outputs["jobs.place"], defs), { ...place, startsAt: 5 });
  assert.deepEqual(fromWire({ at: when, endsAt: when }, { anyOf: [shape("startsAt"), shape("endsAt")] }, defs), {
    at: 5,
    endsAt: 5,
  });
});

/** Answers of every shape that the schema allows, in the form of the library or of the wire. */
function answers(schema: Schema, form: "library" | "wire", depth = 0): fc.Arbitrary<unknown> {
  if (typeof schema["$ref"] === "string")
    return answers(defs[schema["$ref"].split("/").at(-1) ?? ""] ?? {}, form, depth);
  if (Array.isArray(schema["anyOf"]))
    return fc.oneof(...(schema["anyOf"] as Schema[]).map((each) => answers(each, form, depth)));
  if (schema["x-time"] !== undefined) {
    const ms = fc.integer({ min: -8.64e15, max: 8.64e15 });
    return form === "wire" ? ms.map(isoTime) : ms;
  }
  if ("const" in schema) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...(schema["enum"] as unknown[]));
  switch (schema["type"]) {
    case "null":
      return fc.constant(null);
    case "string":
      return fc.oneof(fc.string(), fc.integer({ min: 0, max: 8.64e15 }).map(isoTime));
    case "number":
      return fc.oneof(
        fc.integer(),
        fc.double({ noDefaultInfinity: true, noNaN: true }).filter((each) => !Object.is(each, -0)),
      );
    case "boolean":
      return fc.boolean();
    case "array":
      // A tree has no end in its schema.
      if (depth > 3) return fc.constant([]);
      return fc.array(answers((schema["items"] ?? {}) as Schema, form, depth + 1), { maxLength: 2 });
    case "object":
      return objects(schema, form, depth);
    default:
      // What the user put there: anything.
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objects(schema: Schema, form: "library" | "wire", depth: number): fc.Arbitrary<unknown> {
  const known = Object.entries((schema["properties"] ?? {}) as Record<string, Schema>);
  const { required = [], additionalProperties } = schema as {
    readonly required?: readonly string[];
    readonly additionalProperties?: Schema;
  };
  const fixed = fc.record(Object.fromEntries(known.map(([name, each]) => [name, answers(each, form, depth + 1)])), {
    requiredKeys: [...required],
    noNullPrototype: true,
  });
  if (additionalProperties === undefined || depth > 3) return fixed;
  const others = fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), answers(additionalProperties, form, depth + 1), {
    maxKeys: 2,
    noNullPrototype: true,
  });
  return fc.tuple(others, fixed).map(([more, all]) => ({ ...more, ...(all as object) }));
}
