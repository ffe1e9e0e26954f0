import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPattern, checkTopic, matchesTopic } from "../../src/events/topic.ts";

test("a topic is segments of visible text between dots, up to 512 bytes", () => {
  const topics = ["order", "light.kitchen.changed", "büro.licht", "a.__proto__.constructor", "🐎.0", "x".repeat(512)];
  for (const topic of topics) {
    assert.equal(checkTopic(topic), topic);
    assert.equal(checkPattern(topic), topic, "and every topic is a pattern for itself");
  }
});

test("a pattern may hold * for one segment and end with > for the rest", () => {
  for (const pattern of ["*", ">", "light.*.changed", "*.*.*", "light.>", "*.kitchen.>"]) {
    assert.equal(checkPattern(pattern), pattern);
  }
});

test("what is neither a topic nor a pattern is refused with the reason", () => {
  const cases: [unknown, RegExp][] = [
    ["", /"" is empty; write segments/],
    [".", /"\." has an empty segment/],
    ["a..b", /has an empty segment/],
    [".a", /has an empty segment/],
    ["a.", /has an empty segment/],
    ["a b", /has white space or a control character/],
    ["a.\tb", /has white space/],
    ["a\u00a0b", /has white space/],
    ["a.\0", /such as U\+0000/],
    ["a.\ud800", /has a lone surrogate/],
    ["x".repeat(10_240), /is 10240 bytes long; at most 512 are allowed: put what varies into the payload/],
    ["é".repeat(257), /is 514 bytes long/],
    ["a.".repeat(50_000_000), /is 100000000 bytes long/],
    [5, / 5 must be a string/],
    [null, / null must be a string/],
    [undefined, / undefined must be a string/],
    [{}, / an object must be a string/],
  ];
  for (const [value, message] of cases) {
    assert.throws(() => checkTopic(value as string), { code: "invalid", message });
    assert.throws(() => checkPattern(value as string), { code: "invalid", message });
  }
  assert.throws(() => checkTopic("", "topic of order"), { message: /^topic of order "" is empty/ });
});

test("wildcards are refused in a topic, and in a pattern where they could not be meant", () => {
  for (const topic of ["a.*", ">", "a*b", "a>b"]) {
    assert.throws(() => checkTopic(topic), { code: "invalid", message: /are for patterns; say one topic/ });
  }
  for (const pattern of ["li*t", "a.b*", "**", "a.>>", "a.*>"]) {
    assert.throws(() => checkPattern(pattern), { code: "invalid", message: /stand alone, each as a whole segment/ });
  }
  for (const pattern of [">.a", "a.>.b", ">.>"]) {
    assert.throws(() => checkPattern(pattern), { code: "invalid", message: /has ">" before its end; use "\*"/ });
  }
});

test("one pattern matches segment by segment", () => {
  const cases: [string, string, boolean][] = [
    ["a.b", "a.b", true],
    ["a.b", "a.b.c", false],
    ["a.b", "a", false],
    ["a.*", "a.b", true],
    ["a.*", "a", false],
    ["a.*", "a.b.c", false],
    ["a.>", "a.b.c", true],
    ["a.>", "a", false],
    [">", "a", true],
    ["*.b.>", "x.b.c", true],
    ["*.b.>", "x.c.b", false],
    ["a", "A", false],
  ];
  for (const [pattern, topic, expected] of cases) {
    assert.equal(matchesTopic(pattern, topic), expected, `${pattern} on ${topic}`);
  }
});
