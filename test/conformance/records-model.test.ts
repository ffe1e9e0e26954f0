// Random commits against a model that is a list of maps, one for each commit: what is known now, as of every commit, the
// history of every key, every difference and the feed all follow from it (R3, R4, R6, R7).
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { entity, relation, type Book, type RelationKey, type UserTx } from "../../src/index.ts";
import { backends, openTest } from "../support/open-test.ts";
import { fc } from "../support/property.ts";

const Thing = entity("thing", {
  schema: z.object({ id: z.string(), n: z.number(), note: z.string().optional() }),
  key: "id",
  indexes: ["n"],
});
const Near = relation("near", { from: Thing, to: Thing, schema: z.object({ d: z.number() }) });
const runs = process.env["DAYBOOK_TEST_SEED"] === "random" ? 200 : 15;

type Step =
  | { readonly verb: "put" | "ensure" | "patch"; readonly id: string; readonly n: number }
  | { readonly verb: "delete"; readonly id: string; readonly unlink: boolean }
  | { readonly verb: "link"; readonly from: string; readonly to: string; readonly n: number }
  | { readonly verb: "unlink"; readonly from: string; readonly to: string };

const id = fc.constantFrom("a", "b", "c");
const n = fc.integer({ min: 0, max: 2 });
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ verb: fc.constantFrom("put" as const, "ensure" as const, "patch" as const), id, n }),
  },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("delete" as const), id, unlink: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ verb: fc.constant("link" as const), from: id, to: id, n }) },
  { weight: 1, arbitrary: fc.record({ verb: fc.constant("unlink" as const), from: id, to: id }) },
);
const anyUnit = fc.record({
  steps: fc.array(anyStep, { minLength: 1, maxLength: 4 }),
  fails: fc.nat({ max: 5 }).map((each) => each === 0),
  alone: fc.boolean(),
});

/** The book as maps: `near` under "from>to". */
type Known = { readonly [name: string]: { readonly value: object; readonly revision: number } };
type Model = { readonly commits: Known[]; last: Map<string, number> };

for (const backend of backends) {
  test(`${backend}: random commits read back like a list of maps`, async (t) => {
    const { book } = await openTest(t, backend, { use: [Thing, Near], worker: false });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyUnit, { minLength: 6, maxLength: 16, size: "max" }), async (units) => {
        const own = book.tenant(`t${++round}`);
        const model: Model = { commits: [{}], last: new Map() };
        for (const unit of units) await runUnit(own, model, unit);
        await compare(own, model);
      }),
      { numRuns: runs },
    );
    assert.deepEqual(await book.doctor(), []);
  });
}

async function runUnit(
  book: Book,
  model: Model,
  { steps, fails, alone }: { steps: Step[]; fails: boolean; alone: boolean },
): Promise<void> {
  const before = model.commits.at(-1) ?? {};
  const draft = new Map(Object.entries(before));
  const touched = new Set<string>();
  const first = steps[0] as Step;
  if (alone) {
    const expected = apply(model, draft, touched, first, before);
    assert.equal(await outcomeOf(() => perform(book, first)), expected, JSON.stringify(first));
    if (expected === "ok") commit(model, before, draft, touched);
    return;
  }
  const done = await outcomeOf(() =>
    book.write(async (tx) => {
      draft.clear();
      touched.clear();
      for (const [name, known] of Object.entries(before)) draft.set(name, known);
      for (const step of steps) {
        const expected = apply(model, draft, touched, step, before);
        assert.equal(await outcomeOf(() => perform(tx, step)), expected, JSON.stringify(step));
        const seen = await tx.records.query(Thing).list();
        assert.deepEqual(
          seen.items.map(({ key, value, revision }) => [key, value, revision]),
          things(Object.fromEntries(draft)),
        );
      }
      if (fails) throw new Error("fails");
    }),
  );
  assert.equal(done, fails ? "fails" : "ok");
  if (!fails) commit(model, before, draft, touched);
}

/** What a step does to the maps, and how it ends. */
function apply(
  model: Model,
  draft: Map<string, Known[string]>,
  touched: Set<string>,
  step: Step,
  before: Known,
): string {
  const set = (name: string, value: object): void => {
    const revision = (before[name]?.revision ?? model.last.get(name) ?? 0) + 1;
    draft.set(name, { value, revision });
    touched.add(name);
  };
  const drop = (name: string): void => {
    if (draft.delete(name)) touched.add(name);
  };
  if (step.verb === "link") {
    if (!draft.has(step.from) || !draft.has(step.to)) return "not_found";
    set(`${step.from}>${step.to}`, { d: step.n });
    return "ok";
  }
  if (step.verb === "unlink") {
    drop(`${step.from}>${step.to}`);
    return "ok";
  }
  const known = draft.get(step.id)?.value;
  if (step.verb === "delete") {
    if (known === undefined) return "ok";
    const links = [...draft.keys()].filter((name) => name.includes(">") && name.split(">").includes(step.id));
    if (links.length > 0 && !step.unlink) return "conflict";
    for (const name of [...links, step.id]) drop(name);
    return "ok";
  }
  if (step.verb === "patch") {
    if (known === undefined) return "not_found";
    set(step.id, { ...known, n: step.n });
    return "ok";
  }
  const value = { id: step.id, n: step.n };
  if (step.verb === "ensure" && JSON.stringify(known) === JSON.stringify(value)) return "ok";
  set(step.id, value);
  return "ok";
}

function commit(model: Model, before: Known, draft: Map<string, Known[string]>, touched: Set<string>): void {
  // Made and deleted again in one unit: it never was.
  const changed = [...touched].filter((name) => before[name] !== undefined || draft.has(name));
  if (changed.length === 0) return;
  for (const name of changed) model.last.set(name, draft.get(name)?.revision ?? model.last.get(name) ?? 0);
  model.commits.push(Object.fromEntries(draft));
}

async function perform(on: Book | UserTx, step: Step): Promise<unknown> {
  const { records } = on;
  if (step.verb === "put") return records.put(Thing, { id: step.id, n: step.n });
  if (step.verb === "ensure") return records.ensure(Thing, { id: step.id, n: step.n });
  if (step.verb === "patch") return records.patch(Thing, step.id, { n: step.n });
  if (step.verb === "delete") return records.delete(Thing, step.id, { unlink: step.unlink });
  if (!("from" in step)) throw new Error(step.verb);
  const ends = { from: step.from, to: step.to };
  return step.verb === "link" ? records.link(Near, ends, { d: step.n }) : records.unlink(Near, ends);
}

async function outcomeOf(run: () => Promise<unknown>): Promise<string> {
  try {
    await run();
    return "ok";
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return (error as { code?: string }).code ?? (error as Error).message;
  }
}

async function compare(book: Book, { commits }: Model): Promise<void> {
  const { records } = book;
  const head = commits.length - 1;
  assert.equal(await records.head(), head === 0 ? null : head);
  for (const [moment, known] of commits.entries()) {
    const asOf = await records.query(Thing).asOf(moment).list();
    assert.deepEqual(
      asOf.items.map(({ key, value, revision }) => [key, value, revision]),
      things(known),
      `as of ${moment}`,
    );
    const near = await records.query(Near).asOf(moment).list();
    assert.deepEqual(
      near.items.map(({ key, value }) => [nameOf(key), value]),
      links(known),
    );
    for (const key of ["a", "b", "c"])
      assert.deepEqual(await records.find(Thing, key, { asOf: moment }), known[key]?.value);
    const other = (moment * 7 + 3) % commits.length;
    const diff = await records.diff(moment, other);
    const found = Object.fromEntries(diff.items.map(({ key, before, after }) => [nameOf(key), [before, after]]));
    assert.deepEqual(found, differences(known, commits[other] ?? {}), `from ${moment} to ${other}`);
  }
  const live = await records.query(Thing).list();
  assert.deepEqual(
    live.items.map(({ key, value, revision }) => [key, value, revision]),
    things(commits[head] ?? {}),
  );
  await compareFeed(book, commits);
}

async function compareFeed(book: Book, commits: readonly Known[]): Promise<void> {
  // Replaying the feed, one commit at a time, gives every state again.
  let at = 0;
  const replayed: Record<string, object> = {};
  const histories = new Map<string, unknown[]>();
  for (;;) {
    const page = await book.records.since(at, { limit: 1 });
    for (const { key, kind, value, before, commit } of page.items) {
      const name = nameOf(key);
      assert.deepEqual(before, replayed[name] ?? null);
      assert.equal(kind, value === null ? "deleted" : before === null ? "created" : "updated");
      if (value === null) delete replayed[name];
      else replayed[name] = value as object;
      histories.set(name, [...(histories.get(name) ?? []), [kind, commit, value]]);
    }
    if (page.commit === at) break;
    assert.equal(page.commit, at + 1, "no commit is missing");
    at = page.commit;
    const expected = Object.fromEntries(Object.entries(commits[at] ?? {}).map(([name, { value }]) => [name, value]));
    assert.deepEqual(replayed, expected, `the feed up to ${at}`);
  }
  assert.equal(at, commits.length - 1);
  for (const key of ["a", "b", "c"]) {
    const { items } = await book.records.history(Thing, key);
    assert.deepEqual(
      items.map(({ kind, commit, value }) => [kind, commit, value]),
      histories.get(key) ?? [],
    );
  }
}

function nameOf(key: string | RelationKey): string {
  return typeof key === "string" ? key : `${key.from}>${key.to}`;
}

function things(known: Known): unknown[] {
  const own = Object.entries(known).filter(([name]) => !name.includes(">"));
  return own
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { value, revision }]) => [name, value, revision]);
}

function links(known: Known): unknown[] {
  const own = Object.entries(known).filter(([name]) => name.includes(">"));
  return own.sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, { value }]) => [name, value]);
}

function differences(one: Known, other: Known): Record<string, unknown> {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  const pairs = [...names].map((name) => [name, [one[name]?.value ?? null, other[name]?.value ?? null]] as const);
  return Object.fromEntries(pairs.filter(([, [before, after]]) => JSON.stringify(before) !== JSON.stringify(after)));
}
