import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../support/property.ts";
import { storableText } from "../../src/core/quote.ts";

test("stored text is well formed, has no U+0000 and fits, whatever it was", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string(), fc.integer({ min: 3, max: 40 }), (odd, text, bytesMax) => {
      const stored = storableText(`${text}${odd}\ud83d\0`, bytesMax);

      assert.ok(stored.isWellFormed());
      assert.ok(!stored.includes("\0"));
      assert.ok(Buffer.byteLength(stored) <= bytesMax);
    }),
  );
});

test("text that fits is kept as it is", () => {
  assert.equal(storableText("žluťoučký 🐎", 100), "žluťoučký 🐎");
  assert.equal(storableText("abc", 3), "abc");
  assert.equal(storableText("", 3), "");
});

test("a character is never cut in half", () => {
  assert.equal(storableText("ab🐎🐎", 9), "ab🐎…");
  assert.equal(storableText("ab🐎🐎", 8), "ab…");
});
