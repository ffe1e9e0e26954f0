// queues: the lines in which jobs stand, and the gates in front of them; reservations: which of them a session holds for direct work.
import type { Book, QueueRecord } from "../../index.ts";
import { formatDuration } from "../../core/duration.ts";
import { invalid } from "../../core/error.ts";
import { quote } from "../../core/quote.ts";
import { listed, pageOf } from "../list.ts";
import { flag, maybe, orNone, rate, text, whole } from "../field.ts";
import { noted, page, rehearsing } from "../shared-fields.ts";
import { ago, copied, count, state, table, when, words, type Part } from "../shown.ts";
import { operate, read } from "../verb.ts";

const queue = text("the name of the queue", "queue");

export const queues = {
  list: read({
    words: "queues list",
    about: "list the queues of the tenant, with what stands in each",
    examples: ["queues list --tenant acme"],
    run: async (book) => ({ items: await book.queues.list() }),
    show: ({ items }) => queueTable(items),
  }),

  line: read({
    words: "queues line <queue>",
    about: "list the jobs that stand in line in a queue, the next one first",
    more: `The order is by priority, then by place; nothing else is looked at. What waits (for a time, a key, a
host …) does not stand in line: "jobs list --status waiting --queue <queue>" has it.`,
    input: { queue, ...page },
    examples: ["queues line mail --limit 10"],
    async run(book, { queue: name, ...asked }) {
      const found = await pageOf(book, `line of ${name}`, asked, (options) => book.queues.line(name, options));
      return { queue: name, items: found.items, next: found.next };
    },
    show: ({ queue: name, items }) =>
      table(
        items,
        {
          place: (job) => job.place,
          id: (job) => copied(job.id),
          name: (job) => copied(job.name),
          priority: (job) => job.priority,
          created: (job) => when(job.createdAt),
        },
        {
          none: `Nothing stands in line in queue ${quote(name)}, or nothing behind that cursor.`,
        },
      ),
  }),

  pause: operate({
    words: "queues pause <queue>",
    about: "start no more jobs of a queue until it is resumed",
    more: 'What runs goes on. To hold back one name in all queues, see "jobs pause".',
    input: { queue, ...noted },
    examples: ['queues pause mail --note "the mail server is down"'],
    async run(book, { queue: name, note }) {
      await book.queues.pause(name, note);
      return queueOf(book, name);
    },
    show: (found) => queueTable([found]),
  }),

  resume: operate({
    words: "queues resume <queue>",
    about: "let the jobs of a queue start again",
    input: { queue },
    examples: ["queues resume mail"],
    async run(book, { queue: name }) {
      await book.queues.resume(name);
      return queueOf(book, name);
    },
    show: (found) => queueTable([found]),
  }),

  limit: operate({
    words: "queues limit <queue>",
    about: "limit how many jobs of a queue run at the same time, and how many start per window of time",
    more: 'A limit counts the jobs of the queue in all processes together. "none" lifts it.',
    input: {
      queue,
      concurrency: maybe(orNone(whole("how many may run at the same time", 1))),
      rate: maybe(orNone(rate("how many may start per window, such as 10/1m"))),
    },
    examples: ["queues limit mail --concurrency 2 --rate 100/1m", "queues limit mail --rate none"],
    check({ concurrency, rate: given }) {
      if (concurrency === undefined && given === undefined) throw invalid("give concurrency or rate, or both");
    },
    async run(book, { queue: name, ...to }) {
      await book.queues.limit(name, to);
      return queueOf(book, name);
    },
    show: (found) => queueTable([found]),
  }),

  normalise: operate({
    words: "queues normalise <queue>",
    about: "renumber the positions of a queue's open jobs; their order stays",
    more: `Positions become 50, 150, 250 … per priority, in unchanged order. Nothing needs it: moves make their
own room.`,
    input: { queue, ...rehearsing },
    examples: ["queues normalise mail --dry-run"],
    async run(book, { queue: name, dryRun = false }) {
      const { jobs, changed } = await book.queues.normalise(name, { dryRun });
      return { queue: name, dryRun, jobs, changed };
    },
    show: ({ jobs, changed, dryRun }) =>
      `${changed} of ${count(jobs, "open job")} ${dryRun ? "would get" : "got"} another number`,
  }),
};

async function queueOf(book: Book, name: string): Promise<QueueRecord> {
  const found = (await book.queues.list()).find((each) => each.queue === name);
  if (found === undefined) throw new Error(`the queue ${quote(name)} was changed and is not there`);
  return found;
}

function queueTable(queuesFound: readonly QueueRecord[]): Part {
  const columns = {
    queue: (each: QueueRecord) => copied(each.queue),
    waiting: (each: QueueRecord) => each.waiting,
    queued: (each: QueueRecord) => each.queued,
    running: (each: QueueRecord) => each.running,
    failed: (each: QueueRecord) => each.failed,
    oldest: (each: QueueRecord) => when(each.oldestAt),
    limit: (each: QueueRecord) => each.concurrency,
    rate: (each: QueueRecord) => (each.rate === null ? null : `${each.rate.max}/${formatDuration(each.rate.perMs)}`),
    paused: ({ paused }: QueueRecord) =>
      paused === null ? null : words(ago(paused.at), paused.note === null ? null : `(${paused.note})`),
  };
  return table(queuesFound, columns, { none: "This tenant has no queues yet.", least: ["oldest", "rate"] });
}

export const reservations = {
  list: listed({
    words: "reservations list",
    about: "list the queues that are held, and by which session",
    input: { all: maybe(flag("also those that were released or have expired; the last 500")) },
    examples: ["reservations list --all"],
    find: (book, input) => book.reservations.list(input),
    columns: {
      id: (each) => copied(each.id),
      queue: (each) => copied(each.queue),
      status: (each) => state(each.status),
      session: (each) => copied(each.sessionId),
      reserved: (each) => when(each.reservedAt),
      expires: (each) => when(each.endedAt ?? each.expiresAt),
      note: (each) => each.note,
    },
    none: "There are no such reservations.",
    least: ["session", "reserved"],
  }),
};
