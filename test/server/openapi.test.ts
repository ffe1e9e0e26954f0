import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describeApi, generated } from "../../schema/openapi.ts";
import type { Schema } from "../../src/verbs/field.ts";

const root = join(import.meta.dirname, "../..");

type Described = { readonly paths: Readonly<Record<string, Readonly<Record<string, Schema>>>> };
const document = (await describeApi()) as Described & Schema;

for (const [path, text] of Object.entries(await generated())) {
  test(`${path} is what is made from the table of verbs`, () => {
    assert.equal(
      readFileSync(join(root, path), "utf8"),
      text,
      `${path} is out of date: "npm run openapi" writes it anew`,
    );
  });
}

test("the document is valid OpenAPI 3.1, as a public validator sees it", async () => {
  const validator = new Validator();

  const { valid, errors } = await validator.validate(structuredClone<Record<string, unknown>>(document));

  assert.deepEqual([valid, errors, validator.version], [true, undefined, "3.1"]);
});

test("every reference of the document leads somewhere, and every schema is used", () => {
  const all = JSON.stringify(document);
  const found = new Set([...all.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = ""]) => path));

  const lost = [...found].filter((path) => path.split("/").reduce<unknown>(at, document) === undefined);
  const schemas = Object.keys(["components", "schemas"].reduce<unknown>(at, document) as object);

  assert.deepEqual(lost, []);
  assert.deepEqual(
    schemas.filter((name) => !found.has(`components/schemas/${name}`)),
    [],
  );
});

test("no two operations share a name, and each says who may and what goes wrong", () => {
  const operations = Object.values(document.paths).flatMap((each) => Object.values(each));

  const names = operations.map((each) => each["operationId"]);
  const silent = operations.filter((each) => !JSON.stringify(each["responses"]).includes("responses/Problem"));

  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(silent, []);
  for (const each of operations) {
    const says = each["x-daybook-role"] !== undefined || each["security"] !== undefined;
    assert.ok(says || forEverybody.includes(String(each["operationId"])), String(each["operationId"]));
  }
});

/** They are about the caller, whoever that is. */
const forEverybody = ["GET /api/v1/caller", "POST /api/v1/logout"];

test("no time is a number on the wire", () => {
  assert.doesNotMatch(JSON.stringify(document), /x-time|epoch-ms/);
});

function at(value: unknown, name: string): unknown {
  return (value as Record<string, unknown> | undefined)?.[name];
}
