// Events and listeners against a model of what each pair of them should have come to, after every step.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { event, listener, manualClock, type Book, type ManualClock, type Worker } from "../../src/index.ts";
import { backends, openTest, type Backend } from "../support/open-test.ts";
import { fc, isProof } from "../support/property.ts";

type Name = "plain" | "ordered";
const names: readonly Name[] = ["plain", "ordered"];
type Step =
  | { readonly do: "publish"; readonly key: "a" | "b" | null; readonly tenant: "default" | "acme" }
  | { readonly do: "break" | "mend" | "redrive" | "discard"; readonly who: Name }
  | { readonly do: "tick" };

/** Stories; `npm run proof` tells many more. */
const runs = isProof ? 60 : 12;
const attempts = 2;
const backoffMs = 1000;

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("publish" as const),
        key: fc.constantFrom("a" as const, "b" as const, null),
        tenant: fc.constantFrom("default" as const, "default" as const, "acme" as const),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom("break" as const, "mend" as const, "redrive" as const, "discard" as const),
        who: fc.constantFrom(...names),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("tick" as const) }) },
  ),
  { minLength: 5, maxLength: 25 },
);

/** What a delivery should have come to. */
type Pair = {
  n: number;
  key: string | null;
  failures: number;
  dueAt: number;
  state: "open" | "acked" | "dead" | "discarded";
};

class Model {
  readonly pairs: Record<Name, Pair[]> = { plain: [], ordered: [] };
  readonly broken = new Set<Name>();
  readonly heard: Record<Name, string[]> = { plain: [], ordered: [] };
  now = 0;

  publish(n: number, key: string | null): void {
    for (const name of names) this.pairs[name].push({ n, key, failures: 0, dueAt: this.now, state: "open" });
    this.settle();
  }

  redrive(who: Name): void {
    for (const pair of this.pairs[who].filter(({ state }) => state === "dead")) {
      if (this.broken.has(who)) continue;
      // Of an ordered key those behind it wait; of several dead ones the oldest goes first.
      pair.state = "open";
      pair.dueAt = this.now;
    }
    this.settle();
  }

  discard(who: Name): void {
    const oldest = this.pairs[who].find(({ state }) => state === "dead");
    if (oldest !== undefined) oldest.state = "discarded";
    this.settle();
  }

  /** Everything that may run now runs. */
  settle(): void {
    for (const name of names) {
      for (let again = true; again;) {
        again = false;
        for (const pair of this.pairs[name]) {
          if (pair.state !== "open" || pair.dueAt > this.now || this.#waits(name, pair)) continue;
          again = true;
          if (!this.broken.has(name)) {
            pair.state = "acked";
            this.heard[name].push(`${pair.key ?? "-"}${pair.n}`);
          } else if (++pair.failures >= attempts) pair.state = "dead";
          else pair.dueAt = this.now + backoffMs;
        }
      }
    }
  }

  #waits(name: Name, { n, key }: Pair): boolean {
    if (name === "plain" || key === null) return false;
    return this.pairs[name].some(
      (older) => older.key === key && older.n < n && (older.state === "open" || older.state === "dead"),
    );
  }
}

type Scene = { book: Book; worker: Worker; clock: ManualClock; broken: Set<Name>; heard: Record<Name, string[]> };

async function openScene(t: TestContext, backend: Backend): Promise<Scene> {
  const clock = manualClock();
  const broken = new Set<Name>();
  const heard: Scene["heard"] = { plain: [], ordered: [] };
  const Said = event<{ n: number }>("talk.said");
  const use = names.map((name) =>
    listener(name, {
      on: Said,
      attempts,
      backoff: [backoffMs],
      ordered: name === "ordered",
      run({ n }, { event: { key } }) {
        if (broken.has(name)) throw new Error("broken");
        heard[name].push(`${key ?? "-"}${n}`);
      },
    }),
  );
  const { book } = await openTest(t, backend, { clock, use, durability: "normal" });
  return { book, worker: await book.startWorker({ concurrency: 3 }), clock, broken, heard };
}

async function take({ book, worker, clock, broken }: Scene, model: Model, step: Step, n: number): Promise<void> {
  switch (step.do) {
    case "publish": {
      // Another tenant has no listener: nothing of it is heard here.
      await book.tenant(step.tenant).events.publish("talk.said", { n }, step.key === null ? {} : { key: step.key });
      if (step.tenant === "default") model.publish(n, step.key);
      break;
    }
    case "break":
      broken.add(step.who);
      model.broken.add(step.who);
      break;
    case "mend":
      broken.delete(step.who);
      model.broken.delete(step.who);
      break;
    case "redrive":
      if (model.broken.has(step.who)) break;
      await book.deadLetters.redriveAll({ listener: step.who });
      model.redrive(step.who);
      break;
    case "discard": {
      const oldest = (await book.deadLetters.list({ listener: step.who, limit: 500 })).items.toSorted(
        (a, b) => (a.payload as { n: number }).n - (b.payload as { n: number }).n,
      )[0];
      if (oldest !== undefined) await book.deadLetters.discard(oldest.id, "model");
      model.discard(step.who);
      break;
    }
    case "tick":
      await clock.advance(backoffMs);
      model.now += backoffMs;
      model.settle();
  }
  await worker.idle();
}

const words = { open: "pending", acked: "acked", dead: "dead_lettered", discarded: "discarded" } as const;

for (const backend of backends) {
  test(`${backend}: every pair of event and listener is where the model says, after every step`, async (t) => {
    const scene = await openScene(t, backend);
    let n = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (story) => {
        // One book for all stories: each begins with everything mended and done.
        const model = new Model();
        const first = n;
        scene.broken.clear();
        for (const name of names) {
          await scene.book.deadLetters.discardAll({ listener: name }, "the story is over");
          await scene.book.listeners.skip(name);
          scene.heard[name].length = 0;
        }
        await scene.worker.idle();
        for (const name of names) scene.heard[name].length = 0;

        for (const step of story) {
          await take(scene, model, step, n++);
          const { items } = await scene.book.events.list({ topic: "talk.said", limit: 100 });
          const found = new Map(
            items.flatMap(({ payload, deliveries }) =>
              deliveries.map((each) => [`${each.listener} ${(payload as { n: number }).n}`, each.status] as const),
            ),
          );
          for (const name of names) {
            for (const pair of model.pairs[name])
              assert.equal(found.get(`${name} ${pair.n}`), words[pair.state], `${name} ${pair.n - first}`);
          }
          // Plain ones may overtake each other; of an ordered key none does.
          const ofKey = (list: string[], key: string): string[] => list.filter((each) => each.startsWith(key));
          for (const key of ["a", "b"])
            assert.deepEqual(ofKey(scene.heard.ordered, key), ofKey(model.heard.ordered, key));
          assert.deepEqual(new Set(scene.heard.plain), new Set(model.heard.plain));
        }
      }),
      { numRuns: runs },
    );
    assert.deepEqual(await scene.book.doctor(), []);
  });
}
