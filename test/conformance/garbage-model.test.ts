// Every verb of the library checks its arguments first. Whatever it is given, it answers: no hang, no error of JavaScript's own, the
// same on both back ends. `npm run proof` asks everything, `npm test` a part that is another one for each seed.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { entity, isDaybookError, job, listener, sink, type Book } from "../../src/index.ts";
import { systemClock } from "../../src/core/clock.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import { isProof, seed } from "../support/property.ts";

const Note = entity("note", { schema: z.object({ id: z.string() }), key: "id" });
const work = job("work", { run: () => undefined });
const hear = listener("hear", { on: "a.*", run: () => undefined });
const out = sink("out", { on: "a.*", to: () => undefined });

class Options {
  readonly dryRun = true;
}

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;

/** What is no argument of any verb, or of few. */
const garbage: Readonly<Record<string, () => unknown>> = {
  null: () => null,
  true: () => true,
  "-1": () => -1,
  NaN: () => Number.NaN,
  infinity: () => Number.POSITIVE_INFINITY,
  "a bigint": () => 7n,
  "a symbol": () => Symbol("topic"),
  "an empty text": () => "",
  "a text with U+0000": () => "a\0b",
  "half a surrogate": () => "a\uD800",
  "a long text": () => "x".repeat(100_000),
  "a function": () => () => "order.paid",
  "a promise": () => Promise.resolve({ topic: "order.paid" }),
  "an empty object": () => ({}),
  "an unknown option": () => ({ nobodyKnowsThis: 1 }),
  "an option of null": () => ({ limit: null, at: null, olderThan: null, name: null }),
  "odd options": () => ({ limit: 2n, dryRun: Symbol("a"), after: new Map(), queue: 7, topic: [], status: {}, in: -1 }),
  "a list": () => ["order.paid"],
  "a list of holes": () => Array.from({ length: 3 }),
  "a Map": () => new Map([["topic", "order.paid"]]),
  "a Date": () => new Date(Number.NaN),
  Headers: () => new Headers({ authorization: "Bearer abc" }),
  bytes: () => new Uint8Array(3),
  "a class instance": () => new Options(),
  "a proxy": () => new Proxy({}, {}),
  "a proxy that throws": () =>
    new Proxy(
      {},
      {
        get: () => {
          throw new RangeError("trap");
        },
      },
    ),
  "a circle": () => cycle,
};

/** These do what they say whatever they are given, or end the book. */
const leftOut = new Set(["close", "work", "startWorker", "tenant", "backup", "write", "read", "join", "sql"]);
// They wait for something, or go on for ever: what they are given is checked by their first answer.
const waiting = new Set(["records.watch", "events.live", "jobs.result", "reservations.reserve", "groups.wait"]);

type Verb = (...given: unknown[]) => unknown;

function verbsOf(handle: object): [string, Verb][] {
  const found: [string, Verb][] = [];
  for (const noun of Object.keys(handle)) {
    if (leftOut.has(noun)) continue;
    const part: unknown = Reflect.get(handle, noun);
    if (typeof part === "function") found.push([noun, (part as Verb).bind(handle)]);
    if (typeof part !== "object" || part === null) continue;
    for (const [verb, run] of Object.entries(part) as [string, unknown][]) {
      if (typeof run === "function" && !waiting.has(`${noun}.${verb}`))
        found.push([`${noun}.${verb}`, (run as Verb).bind(part)]);
    }
  }
  return found;
}

type Filled = { readonly book: Book; readonly known: Readonly<Record<string, unknown>> };

/** A book with one of each thing, and by the noun what names it. */
async function fill(t: TestContext, backend: Backend): Promise<Filled> {
  const { book } = await openTest(t, backend, { use: [Note, work, hear, out] });
  const { id: jobs } = await book.jobs.enqueue(work, {}, { in: "1h" });
  const { id: events } = await book.events.publish("a.b", {});
  const { id: calls } = await book.calls.submit({ url: "https://example.com", in: "1h" });
  const { id: groups } = await book.groups.create({ mode: "parallel" }, (group) => group.add(work, {}, { in: "1h" }));
  await book.schedules.create("hourly", { every: "1h", job: work, params: {} });
  await book.templates.create("usual", { job: work });
  await book.records.put(Note, { id: "n-1" });
  const names = {
    schedules: "hourly",
    templates: "usual",
    listeners: "hear",
    sinks: "out",
    queues: "mail",
    records: Note,
  };
  return { book, known: { jobs, events, calls, groups, ...names } };
}

const patienceMs = 20_000;
const bad = /^(?:hangs|internal|\w*Error)/;

async function answerOf(run: () => unknown): Promise<string> {
  const late = new AbortController();
  const hung = systemClock.sleep(patienceMs, late.signal).then(
    () => "hangs",
    () => "",
  );
  const asked = (async () => {
    try {
      await run();
      return "answers";
    } catch (error) {
      if (isDaybookError(error)) return error.code === "internal" ? `internal: ${error.message}` : error.code;
      // What an argument itself throws is its maker's.
      if (error instanceof RangeError && error.message === "trap") return "trap";
      return `${(error as Error).name}: ${(error as Error).stack ?? ""}`;
    }
  })();
  const answer = await Promise.race([asked, hung]);
  late.abort();
  return answer;
}

test("no verb hangs on garbage or fails with an error that is not ours, and both back ends answer alike", async (t) => {
  const [one, other] = (await Promise.all(backends.map((backend) => fill(t, backend)))) as [Filled, Filled];
  const problems: string[] = [];
  let asked = 0;
  const ask = async (verb: string, how: string, run: (filled: Filled) => unknown): Promise<void> => {
    // A part of all, spread over every verb and every kind of garbage.
    if (!isProof && (asked++ + seed) % partOf !== 0) return;
    const [answer, same] = [await answerOf(() => run(one)), await answerOf(() => run(other))];
    if (answer === same && !bad.test(answer)) return;
    problems.push(`${verb}(${how}): ${answer} on SQLite, ${same} on PostgreSQL`.slice(0, 1000));
  };
  const namesOf = (handle: object): string[] => verbsOf(handle).map(([name]) => name);
  const inTx = await one.book.write(async (tx) => namesOf(tx));
  const call = (handle: object, verb: string, given: readonly unknown[]): unknown =>
    verbsOf(handle).find(([name]) => name === verb)?.[1](...given);

  for (const [how, make] of Object.entries(garbage)) {
    for (const place of [0, 1, 2]) {
      const given = (verb: string, { known }: Filled): unknown[] => {
        const first = known[verb.split(".")[0] ?? ""] ?? "x";
        return [first, place === 2 ? {} : "x"].slice(0, place).concat([make()]);
      };
      for (const verb of namesOf(one.book)) {
        await ask(verb, `${how} as number ${place + 1}`, (filled) => call(filled.book, verb, given(verb, filled)));
      }
      for (const verb of inTx) {
        await ask(`tx.${verb}`, `${how} as number ${place + 1}`, (filled) =>
          filled.book.write(async (tx) => void (await call(tx, verb, given(verb, filled)))),
        );
      }
    }
  }

  assert.deepEqual(problems, []);
});

/** `npm test` asks each so manyth. */
const partOf = 23;
