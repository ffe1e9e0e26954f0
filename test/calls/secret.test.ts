import assert from "node:assert/strict";
import { test } from "node:test";
import { mayBeSecret } from "../../src/calls/request/secret.ts";

test("what a machine made, a long number and the name of a secret may be a secret", () => {
  for (const text of [
    ...[
      "5f1c9e77",
      "aB3x",
      "XKQJZWMVPLRTB",
      "dGhpcyBpcyBh",
      "4111 1111 1111 1111",
      "4111-1111-1111-1111",
      "NO93 8601 1117 947",
    ],
    ...["A1B2C-D3E4F-G5H6I", "+47 912 34 567 89", "1768478400000", "abcdefghijklmnopqrstuvwxyz", "qWeRtYuIoP"],
    ...[
      '{"password":"x"}',
      '{"userPin":1234}',
      "?code=1",
      "apikey",
      "X-ClientSecret",
      "authorization",
      "Sids",
      "%61",
      "\\u0061",
      "?user=ada&pass=hunter",
      '{"pass_word":"x"}',
      '{"userPass":"x"}',
      "x-pass",
      '{"db":"postgres://ada:hunter@host/db"}',
      '{"mnemonic":"sea sun"}',
      '{"private":"x"}',
    ],
    "word ".repeat(20_000),
  ]) {
    assert.ok(mayBeSecret(text), text.slice(0, 60));
  }
});

test("words, short numbers and times are no secrets", () => {
  for (const text of [
    ...[
      "/orders/17/lines?page=2",
      '{"orderId":"o-17","author":"ada","shipping":"express"}',
      "done",
      "Hello, World",
      "12:30",
    ],
    ...[
      '{"dueAt":"2026-01-15T12:00:00.000Z","total":1234.5}',
      "2026-01-15 12:00",
      "application/json",
      "HTTP",
      "design",
      "a passenger passed the compass",
    ],
  ]) {
    assert.ok(!mayBeSecret(text), text);
  }
});
