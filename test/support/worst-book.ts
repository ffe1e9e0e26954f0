// A book in which every verb has its worst: as many rows as the verb may touch at once, and documents as large, as deep and as
// finely cut as the limits allow.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { z } from "zod";
import { app, entity, job, listener, open, relation, sink, type Book, type OpenOptions } from "../../src/index.ts";
import { limits } from "../../src/core/limits.ts";
import { roomsOf } from "../../src/open/rooms.ts";
import type { WorkerGrant } from "../../src/jobs/lease/lease.ts";
import { foldRuns } from "../../src/telemetry/rollup/roll-up.ts";
import { testKey } from "../calls/target.ts";
import { bookUrl, cleanup, openTest, testFolder, type Backend } from "./open-test.ts";

const room = 1000;
const bytes = limits.jsonBytesMax - room;
const parts = limits.jsonPartsMax - 10;
const levels = limits.jsonDepthMax - 8;

/** Documents of a megabyte, or as large as they may be, each dear in its own way. */
export const worstJson = {
  "many small fields": (size = bytes) => {
    const count = Math.min(parts, Math.floor(size / 11));
    const more = "-".repeat(Math.floor(size / count) - 11);
    return Object.fromEntries(numbers(count).map((n) => [tag(n) + more, 1]));
  },
  "many empty lists": (size = bytes) => ({ list: numbers(Math.min(parts, Math.floor(size / 3))).map(() => []) }),
  "many numbers": (size = bytes) => ({ list: numbers(Math.floor(size / 2)).map((n) => n % 10) }),
  "one long text": (size = bytes) => ({ text: "é".repeat(size / 2) }),
  "a text of escapes": (size = bytes) => ({ text: '"'.repeat(size / 2) }),
  "as deep as may be": (size = bytes) => ({
    list: numbers(Math.floor(Math.min(size / 2, parts) / levels)).map(() => deep(levels)),
  }),
} satisfies Record<string, (size?: number) => object>;

// Not in order, because canonical text sorts them.
function tag(n: number): string {
  return ((n * 7919) % 10_000_000).toString(36).padStart(6, "k");
}

function deep(more: number): object {
  return more <= 1 ? [] : [deep(more - 1)];
}

export function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n);
}

/** A name, key or tag of so many bytes, none of which is ASCII. */
export function longest(bytesMax: number, end = ""): string {
  return "é".repeat(Math.floor((bytesMax - end.length) / 2)) + end;
}

const work = job("work", {
  attempts: 1,
  async run({ fails, answers }: { fails?: boolean; answers?: number }, { log }) {
    for (const n of numbers(answers === undefined ? 1 : limits.logLinesMax)) log(`line ${n}`);
    if (fails === true) throw new RangeError(`no room ${longest(limits.errorMessageBytesMax, ".")}`);
    return answers === undefined ? null : worstJson["many small fields"](answers);
  },
});

export const Note = entity("note", {
  schema: z.looseObject({ id: z.string(), n: z.number().optional(), text: z.string().optional() }),
  key: "id",
  indexes: ["n"],
  search: ["text"],
});
export const Cites = relation("cites", { from: Note, to: Note, schema: z.object({ why: z.string().optional() }) });

const hear = listener("hear", {
  on: "heard.>",
  attempts: 1,
  run() {
    throw new RangeError("no room");
  },
});

/** Each can be removed once: in each of three tries, and in two ways. */
const removable = numbers(6);
const leaving = removable.map((n) => listener(`leaving-${n}`, { on: "left.>", run: () => undefined }));

const spread = listener("spread", {
  on: "root.said",
  async run(said, { book }) {
    const { leaves } = said as { leaves: number };
    await book.write(async (tx) => {
      for (const n of numbers(leaves)) await tx.events.publish("leaf.said", { n });
    });
  },
});

export type World = {
  readonly book: Book;
  readonly backend: Backend;
  readonly folder: string;
  /** How many rows make many. */
  readonly many: number;
  /** Of a remote worker that may run everything: its token, and what that lets it. */
  readonly worker: { readonly secret: string; readonly grant: WorkerGrant };
  /** A fresh name, key or id. */
  next(): string;
  /** A book of many jobs in line that is marked as a copy, so that it holds them; or is about to be. */
  copy(how: { readonly marked: boolean }): Promise<Book>;
} & Work &
  Memory &
  Sources;

/** `documents`: those of the worst that are in it, all unless it says which. */
export async function openWorst(
  t: TestContext,
  backend: Backend,
  many: number,
  documents: readonly (keyof typeof worstJson)[] = Object.keys(worstJson) as (keyof typeof worstJson)[],
): Promise<World> {
  const large = documents.map((name) => [name, worstJson[name]()] as const);
  const url = await bookUrl(t, backend);
  const gone = await open(url, { use: removable.map((n) => bundle(`gone-${n}`, many)) });
  await gone.close();
  const options: OpenOptions = {
    use: [
      work,
      hear,
      spread,
      ...leaving,
      sink("give", { on: "given.>", to: () => undefined }),
      Note,
      Cites,
      bundle("house", many),
    ],
    calls: { key: testKey, allow: ["127.0.0.0/8"] },
    files: testFolder(t),
  };
  const { book } = await openTest(t, backend, { ...options, url });
  const folder = testFolder(t);
  let last = 0;
  const filled = {
    ...(await fillWork(book, many, large)),
    ...(await fillMemory(book, many, large, folder)),
    ...(await fillSources(book, many, large)),
  };
  await foldRuns(roomsOf(book).store);
  const { secret, id: tokenId } = await book.tokens.create({ role: "worker", tenant: "default" });
  const worker = { secret, grant: { queues: null, names: null, tokenId } };
  const copy = async ({ marked }: { readonly marked: boolean }): Promise<Book> => {
    const other = await bookUrl(t, backend);
    const looking = { use: [work], worker: false } as const;
    const first = await open(other, looking);
    await first.jobs.enqueueMany(
      work,
      numbers(many).map(() => ({})),
    );
    await first.close();
    const marking = await open(other, { ...looking, attach: false });
    if (!marked) {
      cleanup(t, () => marking.close());
      return marking;
    }
    await marking.markAsCopy();
    await marking.close();
    const opened = await open(other, looking);
    cleanup(t, () => opened.close());
    return opened;
  };
  return { book, backend, folder, many, worker, next: () => `n${++last}`, copy, ...filled };
}

function bundle(key: string, many: number): ReturnType<typeof app> {
  return app(key, {
    setup(home) {
      for (const n of numbers(Math.min(many, 1000))) void home.on("quiet.>", { name: `ear-${n}` }, () => undefined);
    },
  });
}

type Work = {
  /** A job in the middle of a long line and another of it, one with large params, and one that has ended with a large result and its run. */
  readonly job: string;
  readonly other: string;
  readonly large: string;
  readonly done: string;
  readonly run: string;
  /** A group of many jobs. */
  readonly group: string;
};

type Large = readonly (readonly [name: string, document: object])[];

async function fillWork(book: Book, many: number, documents: Large): Promise<Work> {
  const few = Math.ceil(many / 10);
  const each = (count: number): object[] => numbers(count).map(() => ({}));
  await book.queues.pause("long");
  await book.queues.pause("large");
  const inLine = await book.jobs.enqueueMany(work, each(many), { queue: "long" });
  const large = await Promise.all(
    documents.map(([, document]) => book.jobs.enqueue(work, document, { queue: "large" })),
  );
  await book.jobs.enqueueMany(work, each(few), (_, n) => ({ queue: `queue-${n}`, in: "1d" }));
  await book.jobs.enqueueMany(work, each(many), { queue: "done" });
  await book.jobs.enqueueMany(
    work,
    numbers(few).map(() => ({ fails: true })),
    { queue: "done" },
  );
  const answers = numbers(30).map(() => ({ answers: limits.resultBytesMax - room }));
  const [answered] = await book.jobs.enqueueMany(work, answers, { queue: "done" });
  const group = await book.groups.create({ mode: "parallel" }, (add) => {
    // Room for those that are added.
    for (let n = 0; n < Math.max(10, many - 100); n++) add.add(work, {}, { queue: "long" });
  });
  await Promise.all(numbers(few).map((n) => book.templates.create(`template-${n}`, { job: work, params: {} })));
  await workOn(book, ["done"]);
  const [run] = (await book.runs.list({ limit: 1 })).items;
  return {
    job: inLine[many >> 1]?.id ?? "",
    other: inLine[many >> 2]?.id ?? "",
    large: large[0]?.id ?? "",
    done: answered?.id ?? "",
    run: run?.id ?? "",
    group: group.id,
  };
}

export async function workOn(book: Book, queues: readonly string[]): Promise<void> {
  const worker = await book.startWorker({ queues: [...queues], concurrency: 100 });
  await worker.idle();
  await worker.stop();
}

type Memory = {
  /** A commit of as many changes as there may be, and a file of as many records. */
  readonly commit: number;
  readonly file: string;
  /** A file of large documents. */
  readonly largeFile: string;
};

/** Notes, of which one is connected with all others and one has many versions. */
async function fillMemory(book: Book, many: number, documents: Large, folder: string): Promise<Memory> {
  const noted = numbers(many).map((n) => ({ id: `note-${n}`, n, text: `words of note ${n}` }));
  await book.write(async (tx) => {
    for (const note of noted) await tx.records.put(Note, note);
  });
  const commit = (await book.records.commits({ limit: 1 })).items[0]?.id ?? 0;
  for (const [name, document] of documents) await book.records.put(Note, { id: name, ...document });
  await book.records.put(Note, { id: "wordy", text: "some words of one to be found ".repeat(bytes / 31) });
  await book.records.put(Note, { id: "hub" });
  for (let from = 0; from < many; from += 1000) {
    await book.write(async (tx) => {
      for (const { id } of noted.slice(from, from + 1000)) await tx.records.link(Cites, { from: "hub", to: id }, {});
    });
  }
  for (const n of numbers(Math.ceil(many / 10))) await book.records.put(Note, { id: "changing", n });
  const [file, largeFile] = [join(folder, "records.jsonl"), join(folder, "large.jsonl")];
  const [lines, largeLines]: [string[], string[]] = [[], []];
  for await (const line of book.records.export({ types: [Note] })) {
    if (!line.includes('"value":')) continue;
    if (line.length < 1000) lines.push(line.replaceAll('"note-', '"read-'));
    else largeLines.push(...numbers(10).map((n) => line.replace(/"(?:key|id)":"/g, `$&${n}-`)));
  }
  writeFileSync(file, lines.join("\n"));
  writeFileSync(largeFile, largeLines.join("\n"));
  return { commit, file, largeFile };
}

type Sources = {
  /** An event that caused as many as its tree may show, a dead letter of many, and a call of a large request. */
  readonly event: string;
  readonly letter: string;
  readonly call: string;
};

async function fillSources(book: Book, many: number, documents: Large): Promise<Sources> {
  const few = Math.ceil(many / 10);
  await Promise.all(
    numbers(few).map((n) => book.schedules.create(`schedule-${n}`, { every: "1h", job: work, params: {} })),
  );
  for (let from = 0; from < many; from += 1000) {
    await book.write(async (tx) => {
      for (const n of numbers(Math.min(1000, many))) await tx.events.publish("heard.aloud", { n: from + n });
    });
  }
  await Promise.all(documents.map(([, document]) => book.events.publish("large.said", document)));
  const { id: event } = await book.events.publish("root.said", { leaves: Math.min(many, limits.lineageEventsMax) });
  await workOn(book, ["events"]);
  const [letter] = (await book.deadLetters.list({ limit: 1 })).items;
  const request = { url: "https://api.example.com/", in: "1d" };
  await book.write(async (tx) => {
    for (const n of numbers(few)) await tx.calls.submit({ ...request, tags: ["many"], json: { n } });
  });
  const call = await book.calls.submit({ ...request, json: documents[0]?.[1] });
  return { event, letter: letter?.id ?? "", call: call.id };
}
