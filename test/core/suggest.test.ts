import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest, refuseUnknown } from "../../src/core/suggest.ts";

const known = ["queue", "priority", "delay", "key", "tags"];

test("the nearest known word is found for common typing errors", () => {
  const slips = {
    quue: "queue",
    qeuue: "queue",
    Priority: "priority",
    prioritty: "priority",
    kay: "key",
    dleay: "delay",
  };
  for (const [slip, meant] of Object.entries(slips)) assert.equal(nearest(slip, known), meant, slip);
});

test("a word that resembles nothing has no suggestion", () => {
  for (const word of ["timeout", "x", "", "k".repeat(10_000)]) assert.equal(nearest(word, known), undefined);
  assert.equal(nearest("anything", []), undefined);
});

test("an unknown option is refused with the one that was probably meant", () => {
  assert.throws(() => refuseUnknown({ key: 1, quue: "mail" }, known, "enqueue"), {
    code: "invalid",
    message: 'unknown option "quue" for enqueue: did you mean "queue"? Known: queue, priority, delay, key, tags',
  });
});

test("an unknown option that resembles nothing is refused with the known ones", () => {
  assert.throws(() => refuseUnknown({ colour: undefined }, known, "enqueue"), {
    message: 'unknown option "colour" for enqueue. Known: queue, priority, delay, key, tags',
  });
});

test("an option that has another name in other libraries is refused with ours, where we have it", () => {
  const words = { delay: "in", retries: "attempts", timezone: "zone", handler: "run", toString: undefined };
  for (const [word, meant] of Object.entries(words)) {
    const details = { option: word, ...(meant === undefined ? {} : { meant }) };
    assert.throws(() => refuseUnknown({ [word]: 1 }, ["in", "attempts", "zone", "run"], "enqueue"), { details }, word);
    assert.throws(() => refuseUnknown({ [word]: 1 }, ["priority"], "enqueue"), { details: { option: word } }, word);
  }
});

test("known options pass", () => {
  refuseUnknown({ queue: "mail", tags: [] }, known, "enqueue");
  refuseUnknown({}, [], "close");
});
