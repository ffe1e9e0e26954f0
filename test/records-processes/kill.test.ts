// A sample of the boundaries; `npm run proof` takes them all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { backends } from "../support/open-test.ts";
import { killAtStatements } from "../support/record-kills.ts";

for (const backend of backends) {
  test(`${backend}: killed before a statement of it, a transaction of records, an event, a job and a row is whole or nothing`, async (t) => {
    assert.ok((await killAtStatements(t, backend, { first: 4, stride: 17 })) >= 2);
  });
}
