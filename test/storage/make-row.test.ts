import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { openConnection } from "../../src/storage/sqlite/connection.ts";

function connect(t: TestContext) {
  const connection = openConnection(":memory:");
  t.after(() => connection.close());
  return connection;
}

test("a row has its columns in their order, whatever they are called", (t) => {
  const { all, get } = connect(t);
  const text = `select 1 as "__proto__", 2 as "a""b", 3 as "constructor", 4 as "]: process.exit(1), [0", null as "0"`;
  const row = get({ text, params: [] }) as object;
  assert.deepEqual(Object.entries(row), [
    ...[["0", null]],
    ...[["__proto__", 1]],
    ...[['a"b', 2]],
    ...[["constructor", 3]],
    ...[["]: process.exit(1), [0", 4]],
  ]);
  assert.equal(Object.getPrototypeOf(row), Object.prototype);
  assert.deepEqual(all({ text: "select ? as a, ? as b", params: [1, "x"] }), [{ a: 1, b: "x" }]);
  assert.equal(get({ text: "select 1 as a where 1 = 0", params: [] }), undefined);
});

test("of two columns with one name the last counts, as the driver has it", (t) => {
  const { all, db } = connect(t);
  const text = "select 1 as a, 2 as a";
  assert.deepEqual(all({ text, params: [] }), [{ ...db.prepare(text).get() }]);
});

test("what a star stands for is asked each time", (t) => {
  const { all, script } = connect(t);
  script("create table note (a integer, b integer); insert into note values (1, 2)");
  const star = { text: "select * from note", params: [] };
  const names = (): string[] => Object.keys(all(star)[0] as object);
  assert.deepEqual(names(), ["a", "b"]);
  script("alter table note rename column a to c");
  assert.deepEqual(names(), ["c", "b"]);
});

test("a table that is changed under a statement that names its columns changes nothing of them", (t) => {
  const { all, script } = connect(t);
  script("create table note (a integer, b integer); insert into note values (1, 2)");
  const named = { text: "select b, a from note", params: [] };
  assert.deepEqual(all(named), [{ b: 2, a: 1 }]);
  script("alter table note add column c integer");
  assert.deepEqual(all(named), [{ b: 2, a: 1 }]);
});
