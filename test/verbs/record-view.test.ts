import assert from "node:assert/strict";
import { test } from "node:test";
import { changeTable } from "../../src/verbs/memory/record-view.ts";
import { render, type Paper } from "../../src/verbs/render.ts";

const pipe: Paper = { width: null, colour: false, zone: "UTC", now: 0 };
const terminal: Paper = { ...pipe, width: 80 };

function rowsOf(before: unknown, after: unknown, paper = pipe): string[] {
  const kind = before === null ? "created" : after === null ? "deleted" : "updated";
  const changes = changeTable([{ kind, type: "order", key: "o-1", before, after }], "Nothing is different.");
  return render(changes, paper).split("\n").slice(1);
}

test("of an updated record only the fields that changed are shown, one line each", () => {
  const before = {
    id: "o-1",
    total: 40,
    place: { city: "Oslo", zip: "0150" },
    lines: [{ n: 1 }, { n: 2 }],
    gone: null,
  };
  const after = {
    id: "o-1",
    total: 41,
    place: { city: "Bergen", zip: "0150" },
    lines: [{ n: 1 }, { n: 3 }],
    "a.b": {},
  };

  assert.deepEqual(rowsOf(before, after), [
    "updated\torder\to-1\ttotal\t40\t41",
    'updated\torder\to-1\tplace.city\t"Oslo"\t"Bergen"',
    "updated\torder\to-1\tlines[1].n\t2\t3",
    "updated\torder\to-1\tgone\tnull\t",
    'updated\torder\to-1\t"a.b"\t\t{}',
  ]);
});

test("a list that grew and a value of another type are told as a whole", () => {
  assert.deepEqual(rowsOf({ tags: ["a"], at: 1 }, { tags: ["a", "b"], at: { day: 1 } }), [
    'updated\torder\to-1\ttags\t["a"]\t["a","b"]',
    'updated\torder\to-1\tat\t1\t{"day":1}',
  ]);
});

test("a record that was made or deleted is one line with its document", () => {
  assert.deepEqual(rowsOf(null, { id: "o-1" }), ['created\torder\to-1\t\t\t{"id":"o-1"}']);
  assert.deepEqual(rowsOf({ id: "o-1" }, null), ['deleted\torder\to-1\t\t{"id":"o-1"}\t']);
});

test("two long texts that begin alike are not cut to the same text", () => {
  const alike = "the customer asked for ".repeat(20);

  const [line = ""] = rowsOf({ note: `${alike}milk` }, { note: `${alike}eggs` }, terminal);

  assert.match(line, /^updated +order +o-1 +note +…ked for milk" +…ked for eggs"$/);
  assert.ok(line.length <= 80);
});
