import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { command, isDaybookError, job, type Book, type EnqueueOptions, type UserTx } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";

const run = (): void => undefined;

test("a job needs a name and a run function, everything else has a default", () => {
  const plain = job("plain", { run });

  assert.deepEqual(
    { ...plain, options: undefined },
    {
      kind: "job",
      name: "plain",
      queue: "default",
      priority: 0,
      attempts: 4,
      losses: 3,
      backoff: undefined,
      timeoutMs: null,
      concurrency: null,
      options: undefined,
    },
  );
});

test("what a definition says is kept, with durations in milliseconds", () => {
  const full = job("full", {
    queue: "mail",
    priority: -1000,
    attempts: 1,
    losses: 0,
    concurrency: 2,
    timeout: "1m30s",
    run,
    backoff: ["1s", 5000],
    limit: { key: () => "k", concurrency: 1 },
    rate: { max: 10, per: "1m" },
  });

  assert.equal(full.queue, "mail");
  assert.equal(full.priority, -1000);
  assert.equal(full.attempts, 1);
  assert.equal(full.losses, 0);
  assert.equal(full.concurrency, 2);
  assert.equal(full.timeoutMs, 90_000);
  assert.deepEqual(full.backoff, ["1s", 5000]);
});

test("a misspelt option is refused with the one that was meant", () => {
  const misspelt: [object, RegExp][] = [
    [{ attemps: 3 }, /unknown option "attemps" for job "mail": did you mean "attempts"\? Known: params, queue/],
    [{ timeOut: "1s" }, /did you mean "timeout"\?/],
    [{ handler: run }, /unknown option "handler" for job "mail": did you mean "run"\?/],
    [{ colour: run }, /unknown option "colour" for job "mail"\. Known/],
    [{ rate: { max: 1, pre: "1s" } }, /unknown option "pre" for rate: did you mean "per"\?/],
    [{ backoff: { bass: "1s" } }, /unknown option "bass" for backoff: did you mean "base"\?/],
    [
      { limit: { key: () => "k", concurency: 1 } },
      /unknown option "concurency" for limit: did you mean "concurrency"\?/,
    ],
  ];

  for (const [option, message] of misspelt) assertInvalid(() => job("mail", { run, ...option }), message);
});

test("a value that cannot be meant is refused when the job is defined, with the value", () => {
  const wrong: [object, RegExp][] = [
    [{ priority: 1001 }, /priority 1001 is not a whole number from -1000 to 1000/],
    [{ priority: 0.5 }, /priority 0.5 is not/],
    [{ priority: Number.NaN }, /priority NaN is not/],
    [{ attempts: 0 }, /attempts 0 is not a whole number from 1/],
    [{ attempts: "3" }, /attempts "3" is not a whole number/],
    [{ losses: -1 }, /losses -1 is not a whole number from 0/],
    [{ concurrency: 0 }, /concurrency 0 is not a whole number from 1/],
    [{ limit: { key: () => "k", concurrency: 0 } }, /concurrency 0 is not a whole number from 1/],
    [{ limit: { key: "k", concurrency: 1 } }, /the limit of job "mail" has no key function/],
    [{ timeout: 0 }, /timeout is 0; it must be at least 1ms/],
    [{ timeout: "soon" }, /timeout is "soon", which is not a duration/],
    [{ timeout: -5 }, /timeout is -5, which is not a duration/],
    [{ queue: "" }, /queue "" is empty/],
    [{ queue: "a\nb" }, /queue .* has a control character/],
    [{ rate: { max: 0, per: "1s" } }, /rate max 0 is not/],
    [{ rate: { max: 1, per: 0 } }, /rate per is 0; it must be at least 1ms/],
    [{ backoff: [] }, /a list of backoffs has 1 to 100 steps, not 0/],
    [{ backoff: { factor: 0.5 } }, /backoff factor 0.5 is not from 1 to 100/],
    [{ backoff: { spread: 2 } }, /backoff spread 2 is not from 0 to 1/],
    [{ backoff: ["soon"] }, /backoff is "soon"/],
    [{ run: undefined }, /job "mail" has no run function/],
  ];

  for (const [option, message] of wrong) assertInvalid(() => job("mail", { run, ...option }), message);
  assertInvalid(() => job("", { run }), /job name "" is empty/);
  assertInvalid(() => job(" mail", { run }), /begins or ends with white space/);
  assertInvalid(() => job("a".repeat(201), { run }), /is 201 bytes long/);
});

// What follows is checked by the compiler: a line that should not compile says so.
const Mail = z.object({ to: z.string(), copies: z.number().default(1) });
const mail = job("mail", {
  params: Mail,
  limit: { key: (params) => params.to, concurrency: 1 },
  rate: { max: 1, per: "1s", key: (params) => params.to },
  run({ to, copies }, { attempt, signal, book }) {
    const typed: [string, number, number, AbortSignal, Book] = [to, copies, attempt, signal, book];
    return { sent: typed[1] };
  },
});
const annotated = job("annotated", { run: (params: { path: string }) => params.path.length });
const anything = job("anything", { run: () => 1 });
const optional = job("optional", { params: z.object({ copies: z.number().optional() }), run });
const program = command("program", { argv: ["true"] });
job("transformed", {
  params: z.object({ at: z.string().transform((text) => text.length) }),
  run: ({ at }) => at.toFixed(),
});
job("wrong", {
  params: Mail,
  // @ts-expect-error -- the schema says that copies is a number
  run: ({ copies }): string => copies,
});
job("wrong", {
  params: Mail,
  // @ts-expect-error -- there is no such param
  limit: { key: ({ from }): string => String(from), concurrency: 1 },
  run,
});

async function typesOf(book: Book, tx: UserTx): Promise<void> {
  // A default may be left out; what has none may not.
  await book.jobs.enqueue(mail, { to: "ada" });
  await tx.jobs.enqueue(mail, { to: "ada", copies: 2 }, { priority: 5 });
  await book.jobs.enqueueMany(mail, [{ to: "ada" }, { to: "bob", copies: 2 }]);
  // @ts-expect-error -- `to` is missing
  await book.jobs.enqueue(mail, {});
  // @ts-expect-error -- `to` is a text
  await tx.jobs.enqueue(mail, { to: 5 });
  // @ts-expect-error -- there is no such param
  await book.jobs.enqueue(mail, { to: "ada", form: "bob" });
  // @ts-expect-error -- one of many is wrong
  await book.jobs.enqueueMany(mail, [{ to: "ada" }, { to: 5 }]);
  // @ts-expect-error -- there is no such policy
  const options: EnqueueOptions = { onConflict: "skip" };
  // Without a schema the handler's own annotation counts, and without either anything goes.
  await book.jobs.enqueue(annotated, { path: "/a" });
  // @ts-expect-error -- the handler wants a path
  await book.jobs.enqueue(annotated, { file: "/a" });
  await book.jobs.enqueue(anything, { any: ["thing"] });
  await book.jobs.enqueue("by-name", 5, options);
  // What needs nothing may be given nothing.
  await book.jobs.enqueue(anything);
  await tx.jobs.enqueue(anything, undefined, { priority: 5 });
  await book.jobs.enqueue("by-name");
  await book.jobs.enqueue(optional);
  await book.jobs.enqueue(program);
  await book.jobs.runNow(anything);
  await book.groups.create({ mode: "parallel" }, (group) => {
    group.add(anything);
    // @ts-expect-error -- its params are missing
    group.add(mail);
  });
  await book.groups.add("id", anything);
  // @ts-expect-error -- its params are missing
  await book.groups.add("id", mail);
  // @ts-expect-error -- its params are missing
  await book.jobs.enqueue(mail);
  // @ts-expect-error -- its params are missing
  await book.jobs.runNow(annotated);
  // @ts-expect-error -- copies is a number
  await book.jobs.enqueue(optional, { copies: "two" });
}

for (const backend of backends) {
  test(`${backend}: a job that needs no params is made without any`, async (t) => {
    const seen: unknown[] = [];
    const bare = job("bare", { run: (params) => void seen.push(params) });
    const { book } = await openTest(t, backend, { use: [bare] });
    await book.jobs.enqueue(bare);
    await book.jobs.enqueue("bare");
    await book.write((tx) => tx.jobs.enqueue(bare));
    const group = await book.groups.create({ mode: "parallel" }, (each) => each.add(bare));
    await book.groups.add(group.id, bare);
    await (await book.startWorker()).idle();
    await book.jobs.runNow(bare);

    assert.deepEqual(
      seen,
      Array.from({ length: 6 }, () => ({})),
    );
  });
}

test("types are inferred from the schema, and a wrong param does not compile", () => {
  const result = mail["~types"]?.result satisfies { sent: number } | undefined;

  assert.equal(result, undefined);
  assert.equal(typeof typesOf, "function");
});

function assertInvalid(make: () => unknown, message: RegExp): void {
  assert.throws(make, (error) => isDaybookError(error) && error.code === "invalid" && message.test(error.message));
}
