import assert from "node:assert/strict";
import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { test } from "node:test";
import { defineFact } from "../../src/core/fact.ts";

type Settled = { name: string; ms: number };

test("a stated fact reaches every subscriber, at once and with its fields", () => {
  const fact = defineFact<Settled>("test.reaches");
  const heard: Settled[] = [];
  fact.subscribe((fields) => heard.push(fields));
  fact.subscribe((fields) => heard.push(fields));

  fact.state({ name: "mail", ms: 5 });

  assert.deepEqual(heard, [
    { name: "mail", ms: 5 },
    { name: "mail", ms: 5 },
  ]);
});

test("a fact knows whether anyone hears it", () => {
  const fact = defineFact<Settled>("test.heard");
  assert.equal(fact.heard, false);
  const hear = (): void => undefined;

  const stopFirst = fact.subscribe(hear);
  const stopSecond = fact.subscribe(hear);

  stopFirst();
  assert.equal(fact.heard, true);
  stopSecond();
  stopSecond();
  assert.equal(fact.heard, false);
});

test("a subscription that was ended hears nothing more", () => {
  const fact = defineFact<Settled>("test.ended");
  const stop = fact.subscribe(() => assert.fail("it had ended"));

  stop();

  fact.state({ name: "mail", ms: 5 });
});

test("tools that know only the channel name hear the fact", () => {
  const fact = defineFact<Settled>("test.channel");
  const heard: unknown[] = [];
  channel("daybook:test.channel").subscribe((fields) => heard.push(fields));

  fact.state({ name: "mail", ms: 5 });

  assert.deepEqual(heard, [{ name: "mail", ms: 5 }]);
});

test("a subscriber that throws harms neither the stater nor its neighbours, and warns once", async () => {
  const fact = defineFact<Settled>("test.throws");
  let heard = 0;
  fact.subscribe(() => {
    throw new Error("listener broke");
  });
  fact.subscribe(() => heard++);
  const warnings: Error[] = [];
  const collect = (warning: Error): void => void warnings.push(warning);
  process.on("warning", collect);
  const warned = once(process, "warning");

  fact.state({ name: "mail", ms: 5 });
  fact.state({ name: "mail", ms: 6 });

  await warned;
  process.off("warning", collect);
  assert.equal(heard, 2);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]?.message ?? "", /listener of the fact "test.throws" failed .*: listener broke/);
});

test("a subscriber that rejects warns too and does not end the process", async () => {
  const fact = defineFact<Settled>("test.rejects");
  fact.subscribe(() => Promise.reject(new Error("listener rejected")) as unknown as void);
  const warned = once(process, "warning");

  fact.state({ name: "mail", ms: 5 });

  const [warning] = (await warned) as [Error];
  assert.match(warning.message, /listener rejected/);
});
