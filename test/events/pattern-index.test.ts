import assert from "node:assert/strict";
import { test } from "node:test";
import { openPatternIndex, matchesTopic } from "../../src/events/topic.ts";
import { fc } from "../support/property.ts";

/** The obvious matcher, slow and without an index: one segment after the other, by recursion. */
function slowMatch([wanted, ...restWanted]: string[], [said, ...restSaid]: string[]): boolean {
  if (wanted === undefined || said === undefined) return wanted === said;
  if (wanted === ">") return restWanted.length === 0;
  return (wanted === "*" || wanted === said) && slowMatch(restWanted, restSaid);
}

// Few different segments, so that patterns share branches and topics often match.
const segment = fc.constantFrom("a", "b", "c", "__proto__", "constructor");
const topics = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("."));
const patterns = fc
  .tuple(fc.array(fc.oneof(segment, fc.constant("*")), { maxLength: 4 }), fc.constantFrom("*", ">", "a", "b"))
  .map(([segments, last]) => [...segments, last].join("."));

test("the index and the single match agree with the obvious matcher", () => {
  const steps = fc.array(fc.record({ pattern: patterns, value: fc.nat({ max: 3 }), add: fc.boolean() }), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(steps, fc.array(topics, { minLength: 1, maxLength: 5 }), (changes, said) => {
      const index = openPatternIndex<number>();
      const model = new Map<string, { pattern: string; value: number }>();

      for (const { pattern, value, add } of changes) {
        const key = `${pattern} ${value}`;
        if (add) {
          index.add(pattern, value);
          model.set(key, { pattern, value });
        } else {
          assert.equal(index.remove(pattern, value), model.delete(key));
        }
      }

      assert.equal(index.size, model.size);
      for (const topic of said) {
        const pairs = [...model.values()];
        const expected = pairs.filter(({ pattern }) => slowMatch(pattern.split("."), topic.split(".")));
        assert.deepEqual(index.match(topic), new Set(expected.map(({ value }) => value)), topic);
        for (const { pattern } of pairs) {
          assert.equal(matchesTopic(pattern, topic), slowMatch(pattern.split("."), topic.split(".")));
        }
      }
    }),
  );
});

test("thirty wildcards against a topic of 10 KB take a step for each wildcard", () => {
  const index = openPatternIndex<string>();
  index.add(`${"*.".repeat(30)}end`, "ends");
  index.add(`${"*.".repeat(30)}>`, "goes on");
  const long = `${"ab.".repeat(3413)}x`;
  const meter = { steps: 0 };

  const found = index.match(long, meter);

  assert.equal(long.length, 10_240);
  assert.deepEqual([...found], ["goes on"]);
  assert.equal(meter.steps, 31);
});

test("wildcards that branch at every segment visit each node at most once", () => {
  // Every mix of "a" and "*" over ten segments, followed by what never comes: the worst a walk by trial can meet.
  const index = openPatternIndex<string>();
  for (let mix = 0; mix < 2 ** 10; mix++) {
    const segments = Array.from({ length: 10 }, (_, at) => ((mix >> at) % 2 === 0 ? "a" : "*"));
    index.add([...segments, "never"].join("."), "value");
  }
  const meter = { steps: 0 };

  const found = index.match(`${"a.".repeat(10)}a`, meter);

  assert.equal(found.size, 0);
  assert.equal(meter.steps, 2 ** 11 - 1);
});

test("ten thousand patterns cost a topic only what it can reach", () => {
  const index = openPatternIndex<number>();
  for (let room = 0; room < 10_000; room++) index.add(`light.room-${room}.changed`, room);
  index.add("light.*.changed", -1);
  const meter = { steps: 0 };

  const found = index.match("light.room-77.changed", meter);

  assert.deepEqual(found, new Set([77, -1]));
  assert.equal(meter.steps, 6);
});

test("removing a pattern leaves nothing in the index", () => {
  const index = openPatternIndex<string>();
  index.add("a.b.>", "one");
  index.add("a.b", "one");
  assert.equal(index.remove("a.b.>", "two"), false);
  assert.equal(index.remove("a.c.>", "one"), false);
  index.remove("a.b.>", "one");
  index.remove("a.b", "one");
  const meter = { steps: 0 };

  const found = index.match("a.b.c", meter);

  assert.deepEqual([found.size, index.size, meter.steps], [0, 0, 1]);
});
