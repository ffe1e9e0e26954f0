import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import {
  entity,
  event,
  giveUp,
  job,
  listener,
  manualClock,
  type Book,
  type Causes,
  type ManualClock,
} from "../../src/index.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import { plansOf, wholeReads } from "../support/explain.ts";
import { backends, openTest } from "../support/open-test.ts";

const Order = entity("order", { schema: z.object({ id: z.string() }), key: "id" });
const Said = event<{ n: number }>("said.aloud");

const leaf = job("leaf", { run: () => undefined });
const fails = job("fails", { attempts: 2, backoff: ["1s"], run: () => Promise.reject(new Error("no")) });
const parent = job("parent", {
  attempts: 1,
  async run({ leaves = 0 }: { leaves?: number }, { book }) {
    await book.records.put(Order, { id: "o-17" }, { reason: "it came" });
    await book.events.publish(Said, { n: 1 });
    await book.calls.submit({ url: "https://stock.example/reserve", name: "reserve", in: "1d" });
    await book.jobs.enqueue(fails, {});
    if (leaves > 0) {
      await book.jobs.enqueueMany(
        leaf,
        Array.from({ length: leaves }, () => ({})),
      );
    }
  },
});
const tell = listener("tell", {
  on: Said,
  attempts: 1,
  async run({ n }, { book }) {
    if (n > 3) giveUp("enough");
    await book.jobs.enqueue(leaf, {});
  },
});
const use = [Order, Said, leaf, fails, parent, tell];

/** Names of nodes, and edges by them. */
function drawn({ asked, root, nodes, edges, cut }: Causes): {
  asked: string;
  root: string;
  edges: string[];
  cut: boolean;
} {
  const name = (key: string): string => {
    const node = nodes.find((each) => each.key === key);
    return node === undefined ? `no ${key}` : `${node.kind} ${node.name}`;
  };
  return {
    asked: name(asked),
    root: name(root),
    edges: edges.map(({ from, to, kind }) => `${name(from)} ${kind} ${name(to)}`).toSorted(),
    cut,
  };
}

async function workOff(book: Book, clock: ManualClock): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await clock.advance("2s");
  await worker.idle();
  await worker.stop();
}

for (const backend of backends) {
  describe(backend, () => {
    test("whatever of a chain is asked for, the whole of it is told from its first cause on", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      await book.schedules.create("nightly", { every: "1d", job: parent });
      await book.schedules.trigger("nightly");
      await workOff(book, clock);

      const [first] = (await book.jobs.list({ name: "parent" })).items;
      const expected = [
        "delivery tell caused job leaf",
        "event said.aloud delivered delivery tell",
        "job fails retried job fails",
        "job parent caused call reserve",
        "job parent caused commit it came",
        "job parent caused event said.aloud",
        "job parent caused job fails",
        "schedule nightly fired job parent",
      ];
      const [said] = (await book.events.list()).items;
      const [call] = (await book.calls.list()).items;
      const [last] = (await book.jobs.list({ name: "leaf" })).items;
      for (const [id, asked] of [
        [first?.id, "job parent"],
        [first?.runId, "job parent"],
        [said?.id, "event said.aloud"],
        [call?.id, "call reserve"],
        [last?.id, "job leaf"],
        ["1", "commit it came"],
      ] as const) {
        assert.deepEqual(
          drawn(await book.causes(id ?? "")),
          { asked, root: "schedule nightly", edges: expected, cut: false },
          asked,
        );
      }
      const { nodes } = await book.causes(first?.id ?? "");
      assert.deepEqual(
        nodes.filter(({ kind }) => kind === "job").map(({ name, status, runId }) => [name, status, runId === null]),
        [
          ["parent", "completed", false],
          ["fails", "failed", false],
          ["fails", "failed", false],
          ["leaf", "completed", false],
        ],
      );
    });

    test("a retry is caused by the job before it, a replay by its event, and a resent call by its call", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      const { id } = await book.jobs.enqueue(fails, {});
      await workOff(book, clock);
      const retried = await book.jobs.retry((await book.jobs.chain(id)).at(-1)?.id ?? "");
      const said = await book.events.publish(Said, { n: 1 });
      const { ids } = (await book.events.replay(said.id)) as { ids?: readonly string[] };
      const call = await book.calls.submit({ url: "https://stock.example/reserve", name: "reserve" });
      await book.calls.cancel(call.id);
      const again = await book.calls.resend(call.id, { in: "1d" });
      const replayed = (await book.events.list()).items.find((each) => each.id !== said.id);

      const chain = await book.causes(retried.id);

      assert.deepEqual([chain.root, chain.nodes.length], [`job:${id}`, 3]);
      assert.deepEqual(drawn(chain).edges, Array(2).fill("job fails retried job fails"));
      assert.ok(ids === undefined || ids.length === 1);
      assert.deepEqual(
        drawn(await book.causes(replayed?.id ?? "")).edges.filter((each) => each.includes("replayed")),
        ["event said.aloud replayed event said.aloud"],
      );
      assert.deepEqual(drawn(await book.causes(again.id)).edges, ["call reserve resent call reserve"]);
    });

    test("of more than may be shown, the causes and the nearest effects of the asked one are kept, and the rest is said to be cut", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      const first = await book.jobs.enqueue(parent, { leaves: 400 });
      await workOff(book, clock);
      const [said] = (await book.events.list()).items;

      const all = await book.causes(first.id);
      const one = await book.causes(said?.id ?? "");

      assert.deepEqual([all.nodes.length, all.cut, one.nodes.length, one.cut], [200, true, 200, true]);
      assert.equal(all.edges.length, 199);
      assert.deepEqual(
        one.nodes.slice(0, 4).map(({ kind, name }) => `${kind} ${name}`),
        ["job parent", "event said.aloud", "delivery tell", "job leaf"],
      );
    });

    test("what runs now has effects already, and what nobody caused stands alone", async (t) => {
      const gate = Promise.withResolvers<void>();
      const made = Promise.withResolvers<void>();
      const slow = job("slow", {
        async run(_: unknown, { book }) {
          await book.jobs.enqueue(leaf, {}, { in: "1d" });
          made.resolve();
          await gate.promise;
        },
      });
      const { book } = await openTest(t, backend, { use: [...use, slow], clock: manualClock() });
      const { id } = await book.jobs.enqueue(slow, {});
      const alone = await book.jobs.enqueue(leaf, {}, { in: "1d" });
      const worker = await book.startWorker();
      await made.promise;

      const running = await book.causes((await book.jobs.get(id)).runId ?? "");
      gate.resolve();
      await worker.stop();

      assert.deepEqual(drawn(running), {
        asked: "job slow",
        root: "job slow",
        edges: ["job slow caused job leaf"],
        cut: false,
      });
      assert.deepEqual(
        running.nodes.map(({ status }) => status),
        ["running", "waiting"],
      );
      assert.deepEqual(drawn(await book.causes(alone.id)), {
        asked: "job leaf",
        root: "job leaf",
        edges: [],
        cut: false,
      });
    });

    test("another tenant's, and what never was, is not found", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { use, clock });
      const { id } = await book.jobs.enqueue(leaf, {});
      await book.records.put(Order, { id: "o-1" });

      for (const asked of [id, "1", "none", "", null]) {
        await assert.rejects(book.tenant("acme").causes(asked as never), { code: "not_found" }, String(asked));
      }
      await assert.rejects(book.causes("none"), { message: 'there is no job, run, event, call or commit "none"' });
    });

    test("each step is a seek", async (t) => {
      const clock = manualClock();
      const { book, url } = await openTest(t, backend, { use, clock });
      const { id } = await book.jobs.enqueue(parent, {});
      await workOff(book, clock);

      const steps = await plansOf(roomsOf(book).store, url, () => book.causes(id));

      for (const index of [
        "jobs_caused",
        "events_caused",
        "commits_caused",
        "jobs_one_retry",
        "deliveries_one_chain",
      ]) {
        assert.ok(
          steps.some((step) => step.includes(index)),
          `${index}:\n${steps.join("\n")}`,
        );
      }
      assert.deepEqual(wholeReads(steps), []);
    });
  });
}
