import assert from "node:assert/strict";
import { test } from "node:test";
import {
  condition,
  moment,
  readCondition,
  readKey,
  readMoment,
  readPlace,
} from "../../src/verbs/memory/record-field.ts";

test("a path means the field of that name, also where every object has one", () => {
  for (const name of ["constructor", "__proto__", "toString", "from", "@keys"]) {
    assert.deepEqual(readPlace(name), { side: "value", path: [name] });
  }
  assert.deepEqual(readPlace("from:address.city"), { side: "from", path: ["address", "city"] });
  assert.deepEqual(readPlace('["a.b"]'), { side: "value", path: ["a.b"] });
  assert.deepEqual(readPlace("@key"), { side: "key", path: [] });
});

test("a filter is a path, a word and a value in JSON", () => {
  const at = (...path: string[]): object => ({ side: "value", path });

  assert.deepEqual(readCondition('status eq "paid"'), { op: "eq", at: at("status"), value: "paid" });
  assert.deepEqual(readCondition("place.city  isNull"), { op: "isNull", at: at("place", "city") });
  assert.deepEqual(readCondition('name in ["a b", "c"]'), { op: "in", at: at("name"), value: ["a b", "c"] });
  assert.deepEqual(readCondition('["a] b", "c"] gt 4'), { op: "gt", at: at("a] b", "c"), value: 4 });
  assert.deepEqual(readCondition('from:["a b"] ne 1'), { op: "ne", at: { side: "from", path: ["a b"] }, value: 1 });
  assert.deepEqual(readCondition('@key startsWith "o-"'), {
    op: "startsWith",
    at: { side: "key", path: [] },
    value: "o-",
  });
});

test("a filter that cannot be read is refused before the book is opened, and the message says why", () => {
  const { check } = condition("a filter");
  const refused = (text: string, message: RegExp): void =>
    assert.throws(() => check(text, "--filter"), { code: "invalid", message });

  refused("status", /--filter is "status": give a path, a word and a value in JSON, such as status eq "paid"/);
  refused("status eq", /--filter is "status eq": it lacks a value in JSON/);
  refused("status eq paid", /the value of --filter/);
  refused("status isNull 4", /isNull takes no value/);
  refused("status equals 4", /"equals" is not known to conditions: eq, ne/);
  refused("status eq null", /use isNull\(\) instead/);
});

test("a moment is a commit or a time", () => {
  const { check } = moment("when");

  assert.equal(readMoment("17"), 17);
  assert.equal(readMoment("2026-11-01T00:00:00Z"), "2026-11-01T00:00:00Z");
  assert.doesNotThrow(() => [check("0", "from"), check("2026-11-01T00:00:00Z", "from")]);
  assert.throws(() => check("yesterday", "from"), { code: "invalid", message: /^from is "yesterday"/ });
});

test("an entity has one key, and a relation has two ends and perhaps an instance", () => {
  const order = { kind: "entity", name: "order" } as Parameters<typeof readKey>[0];
  const placed = { kind: "relation", name: "placed" } as Parameters<typeof readKey>[0];

  assert.equal(readKey(order, ["o-1"]), "o-1");
  assert.deepEqual(readKey(placed, ["ada", "o-1"]), { from: "ada", to: "o-1" });
  assert.deepEqual(readKey(placed, ["ada", "o-1", "x"]), { from: "ada", to: "o-1", instance: "x" });
  assert.throws(() => readKey(order, ["ada", "o-1"]), { code: "invalid", message: /give one key/ });
  assert.throws(() => readKey(placed, ["ada"]), { code: "invalid", message: /give from, to/ });
});
