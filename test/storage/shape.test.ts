import assert from "node:assert/strict";
import { test } from "node:test";
import { shape } from "../../src/storage/shape.ts";

test("a column is named by the field that it fills, in the order of the columns", () => {
  const rows = [
    { ".seq": 1, id: "a", "params json": '{"n":1}', "rate.max": 2, "rate.perMs": 60, "gone flag": 1 },
    { ".seq": 2, id: "b", "params json": null, "rate.max": null, "rate.perMs": 60, "gone flag": 0 },
  ];

  assert.equal(
    JSON.stringify(shape(rows)),
    JSON.stringify([
      { id: "a", params: { n: 1 }, rate: { max: 2, perMs: 60 }, gone: true },
      { id: "b", params: null, rate: null, gone: false },
    ]),
  );
});

test("an object is null when the first of its columns is, whatever stands inside it", () => {
  const columns = { "run.id": "r", "run.error.type": null, "run.error.message": "", "run.result json": "[1]" };

  assert.deepEqual(shape([columns]), [{ run: { id: "r", error: null, result: [1] } }]);
  assert.deepEqual(shape([{ ...columns, "run.id": null }]), [{ run: null }]);
  assert.deepEqual(shape([]), []);
});

test("an object that is said to be one is there though its first column is null", () => {
  const columns = { "phases object": 0, "phases.dnsMs": null, "phases.totalMs": 3 };

  assert.deepEqual(shape([columns]), [{ phases: { dnsMs: null, totalMs: 3 } }]);
});
