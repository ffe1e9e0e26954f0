// A program that works on a book and does everything to its jobs that a user can, at random, until it is told to rest. It is
// started and killed by job-stress.ts.
import { systemClock } from "../../src/core/clock.ts";
import { isDaybookError, job, listener, open, seededRandom, type Enqueued } from "../../src/index.ts";
import { openLedger } from "./job-ledger.ts";

export type StressStart = { url: string; folder: string; seed: number; callers: number };
export type StressSaid =
  | { readonly said: "open" }
  | { readonly said: "rested"; readonly done: Record<string, number>; readonly refused: Record<string, number> };

const start = JSON.parse(process.argv[2] ?? "{}") as StressStart;
const say = (message: StressSaid): void => void process.send?.(message);
const random = seededRandom(start.seed);
const ledger = openLedger(start.folder);
const done: Record<string, number> = {};
const refused: Record<string, number> = {};
let resting = false;

const queues = ["a", "b", "c"] as const;
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
const upTo = (most: number): number => Math.floor(random() * most);
const work = async (): Promise<void> => systemClock.sleep(upTo(4));
const losses = 1_000_000;

const plain = job("plain", { losses, run: work });
const limited = job("limited", { losses, concurrency: 6, run: work });
const perKey = job("per-key", {
  losses,
  limit: { key: ({ key }: { key: string }) => key, concurrency: 1 },
  run: (_params: { key: string }) => work(),
});
const fails = job("fails", {
  losses,
  attempts: 2,
  backoff: ["1ms"],
  async run(_params, { attempt }) {
    await work();
    if (attempt === 1) throw new Error("the first attempt fails");
  },
});
const finishing = job("finishing", {
  losses,
  run: (_params, { finish, job: { id } }) => finish((tx) => tx.sql`insert into effect (job_id) values (${id})`),
});
const direct = job("direct", { run: work });
const inOrder = listener("in-order", { on: "said", ordered: true, losses, run: work });

// When the parent is gone nobody waits for this program any more.
process.once("disconnect", () => process.exit(0));
process.once("message", () => (resting = true));

const book = await open(start.url, { use: [plain, limited, perKey, fails, finishing, direct, inOrder] });
async function call(): Promise<void> {
  while (!resting) {
    const [name, verb] = pick(verbs);
    try {
      await verb();
      done[name] = (done[name] ?? 0) + 1;
    } catch (error) {
      const why = `${name}: ${isDaybookError(error) ? error.code : String(error)}`;
      refused[why] = (refused[why] ?? 0) + 1;
    }
    await systemClock.sleep(upTo(10)); // the workers keep up
  }
}

function acknowledge(...made: readonly Pick<Enqueued, "id">[]): void {
  for (const { id } of made) ledger.note("ack", { jobId: id });
}

async function someJob(queue: string): Promise<{ id: string; other: string } | undefined> {
  const { items } = await book.queues.line(queue, { limit: 20 });
  const [one, other] = [pick(items), pick(items)];
  return one === undefined || other === undefined || one.id === other.id ? undefined : { id: one.id, other: other.id };
}

const makers: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["enqueue", async () => acknowledge(await book.jobs.enqueue(plain, {}, { queue: pick(queues), priority: upTo(2) }))],
  [
    "enqueueMany",
    async () => acknowledge(...(await book.jobs.enqueueMany(plain, [{}, {}, {}, {}], { queue: pick(queues) }))),
  ],
  ["enqueue limited", async () => acknowledge(await book.jobs.enqueue(limited, {}, { queue: pick(queues) }))],
  [
    "enqueue per key",
    async () => acknowledge(await book.jobs.enqueue(perKey, { key: `k${upTo(4)}` }, { queue: pick(queues) })),
  ],
  ["enqueue failing", async () => acknowledge(await book.jobs.enqueue(fails, {}, { queue: pick(queues) }))],
  ["enqueue finishing", async () => acknowledge(await book.jobs.enqueue(finishing, {}, { queue: pick(queues) }))],
  [
    "enqueue delayed",
    async () => acknowledge(await book.jobs.enqueue(plain, {}, { queue: pick(queues), in: `${upTo(300)}ms` })),
  ],
  [
    "enqueue keyed",
    async () => {
      const key = { key: `key-${upTo(5)}`, keyScope: pick(["queued", "done"] as const) };
      acknowledge(
        await book.jobs.enqueue(
          plain,
          {},
          { queue: pick(queues), ...key, onConflict: pick(["keep", "replace"] as const) },
        ),
      );
    },
  ],
  ["publish", () => book.events.publish("said", {}, { key: `k${upTo(3)}` })],
  [
    "group",
    async () => {
      const how = {
        mode: pick(["sequential", "parallel"] as const),
        onFailure: pick(["stop", "skip", "continue"] as const),
      };
      const { id, jobs } = await book.groups.create(how, (group) => {
        for (let slot = 0; slot < 4; slot++) group.add(pick([plain, fails, finishing]), {}, { queue: pick(queues) });
      });
      acknowledge(...jobs);
      if (upTo(4) === 0) await book.groups.cancel(id);
    },
  ],
];

const steerers: readonly (readonly [string, () => Promise<unknown>])[] = [
  [
    "pause",
    async () => {
      const queue = pick(queues);
      await book.queues.pause(queue);
      await book.queues.resume(queue);
    },
  ],
  [
    "pause name",
    async () => {
      await book.jobs.pause("plain");
      await book.jobs.resume("plain");
    },
  ],
  [
    "limit",
    async () => {
      const queue = pick(queues);
      await book.queues.limit(queue, { concurrency: 3, rate: { max: 20, per: "100ms" } });
      await book.queues.limit(queue, { concurrency: null, rate: null });
    },
  ],
  [
    "reserve",
    async () => {
      const { id } = await book.reservations.reserve(pick(queues), { expires: "5s" });
      await book.reservations.release(id);
    },
  ],
  ["runNow", () => book.jobs.runNow(direct, {}, { queue: pick(queues), timeout: "5s" })],
  [
    "move",
    async () => {
      const found = await someJob(pick(queues));
      if (found === undefined) return;
      await book.jobs.move(found.id, pick(["first", "last", { before: found.other }, { after: found.other }] as const));
    },
  ],
  [
    "prioritise",
    async () => {
      const found = await someJob(pick(queues));
      if (found !== undefined) await book.jobs.prioritise(found.id, upTo(3));
    },
  ],
  [
    "cancel",
    async () => {
      const found = await someJob(pick(queues));
      if (found !== undefined) await book.jobs.cancel(found.id);
    },
  ],
  ["normalise", () => book.queues.normalise(pick(queues))],
  ["recover", () => book.jobs.recover()],
];
const verbs = [...makers, ...makers, ...steerers];

await book.startWorker({ concurrency: 8 });
say({ said: "open" });
await Promise.all(Array.from({ length: start.callers }, call));
say({ said: "rested", done, refused });
