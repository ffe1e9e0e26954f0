import assert from "node:assert/strict";
import { test } from "node:test";
import { readPlace } from "../../src/cli/record-words.ts";

test("a path means the field of that name, also where every object has one", () => {
  for (const name of ["constructor", "__proto__", "toString", "from", "@keys"]) {
    assert.deepEqual(readPlace(name), { side: "value", path: [name] });
  }
  assert.deepEqual(readPlace("from:address.city"), { side: "from", path: ["address", "city"] });
  assert.deepEqual(readPlace('["a.b"]'), { side: "value", path: ["a.b"] });
  assert.deepEqual(readPlace("@key"), { side: "key", path: [] });
});
