// A book that has something of everything a server can be asked about.
import { z } from "zod";
import { entity, event, job, listener, open, relation, type Book } from "../../src/index.ts";

const Note = entity("my-note", { schema: z.object({ id: z.string(), text: z.string() }), key: "id", search: ["text"] });
const Cites = relation("my-cites", { from: Note, to: Note, schema: z.object({ why: z.string() }) });
const Said = event<{ text: string }>("said.aloud");
const work = job("my-work", {
  attempts: 1,
  run({ fails }: { fails?: boolean }) {
    if (fails === true) throw new Error("no");
    return { done: true };
  },
});
const hear = listener("my-hear", {
  on: Said,
  attempts: 1,
  run() {
    throw new Error("deaf");
  },
});
export const served = [Note, Cites, Said, work, hear];

/** Something of everything, in the tenant "default"; what it is called by, by the noun of its verbs or the name of a field. */
export async function fillServed(url: string): Promise<Record<string, string[]>> {
  const book = await open(url, { use: served });
  const done = await book.jobs.enqueue(work, {}, { tags: ["a"], key: "my-key" });
  const failed = await book.jobs.enqueue(work, { fails: true });
  const said = await book.events.publish(Said, { text: "a" });
  await workOff(book);
  const waiting = await book.jobs.enqueue(work, {}, { in: "1d", queue: "my-mail" });
  const group = await book.groups.create({ name: "my-batch", mode: "parallel" }, (add) => add.add(work, {}));
  await book.templates.create("my-letter", { job: work });
  await book.schedules.create("my-nightly", { every: "1h", job: work });
  const call = await book.calls.submit({ url: "https://shop.example/a", in: "30d" });
  await book.records.put(Note, { id: "my-1", text: "one" });
  await book.records.put(Note, { id: "my-2", text: "two" });
  await book.records.link(Cites, { from: "my-1", to: "my-2" }, { why: "so" });
  const [run] = (await book.runs.list()).items;
  const [dead] = (await book.deadLetters.list()).items;
  const { id: token } = await book.tokens.create({ role: "read", tenant: "default" });
  const { session } = await book.workers.attach({ names: ["remote"], host: "h" });
  await book.jobs.enqueue("remote", {});
  const [leased] = await book.workers.claim(session);
  const { id: operation } = await book.access.operations.start(
    { verb: "jobs.cancelAll", tenant: "default", caller: null, input: {} },
    async () => null,
  );
  await book.close();
  return {
    jobs: [done.id, failed.id, waiting.id],
    groups: [group.id],
    templates: ["my-letter"],
    schedules: ["my-nightly"],
    slot: ["2026-01-01T00:00:00Z"],
    events: [said.id],
    topic: ["said.aloud", "said.*"],
    listeners: ["my-hear"],
    deadLetters: [dead?.id ?? ""],
    calls: [call.id],
    runs: [run?.id ?? ""],
    queues: ["my-mail", "default"],
    queue: ["my-mail", "default"],
    sessions: [session],
    session: [session],
    workers: [leased?.lease ?? ""],
    tokens: [token],
    operations: [operation],
    type: ["my-note", "my-cites"],
    key: ["my-1", "my-2", "my-key"],
    from: ["my-1"],
    to: ["my-2"],
    name: ["my-work", "my-hear", "my-letter", "my-nightly"],
    job: ["my-work"],
    template: ["my-letter"],
    tenant: ["default"],
  };
}

async function workOff(book: Book): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
}
