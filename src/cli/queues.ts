// daybook queues: the lines in which jobs stand, and the gates in front of them.
import type { Command } from "commander";
import type { Book } from "../book.ts";
import { formatDuration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { isoTime } from "../core/time.ts";
import type { LinePage, QueueRecord } from "../jobs/queues.ts";
import type { LaneLimits } from "../jobs/gate.ts";
import type { Answer } from "./answer.ts";
import { isoOrNull } from "./job-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { plainCell, showTable, showTime, timeCell } from "./show.ts";
import { wholeNumber } from "./whole-number.ts";
import { changing, looking, withBook } from "./with-book.ts";

const groupExample = `
A queue belongs to a tenant and exists once it was used or limited.

Example:
  $ daybook queues list --book shop.db
  $ daybook queues pause --book shop.db mail --note "the mail server is down"
  $ daybook queues limit --book shop.db mail --concurrency 2 --rate 100/1m`;

const listExample = `
Example:
  $ daybook queues list --book shop.db --tenant acme`;

const lineExample = `
The order is by priority, then by place; nothing else is looked at. What waits (for a time, a key, a
host …) does not stand in line: "daybook jobs list --status waiting --queue <queue>" has it.

Example:
  $ daybook queues line --book shop.db mail --limit 10`;

const pauseExample = `
What runs goes on. To hold back one name in all queues, see "daybook jobs pause".

Example:
  $ daybook queues pause --book shop.db mail --note "the mail server is down"`;

const resumeExample = `
Example:
  $ daybook queues resume --book shop.db mail`;

const limitExample = `
A limit counts the jobs of the queue in all processes together. "none" lifts it.

Example:
  $ daybook queues limit --book shop.db mail --concurrency 2 --rate 100/1m
  $ daybook queues limit --book shop.db mail --rate none`;

const normaliseExample = `
Positions become 50, 150, 250 … per priority, in unchanged order. Nothing needs it: moves make their
own room.

Example:
  $ daybook queues normalise --book shop.db mail --dry-run`;

export function queues(program: Command): void {
  const group = program
    .command("queues")
    .description("list queues and their lines, pause, resume, limit and normalise them")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  group
    .command("list")
    .description("list the queues of the tenant, with what stands in each")
    .addHelpText("after", listExample)
    .action((_options: unknown, command: Command) => withBook(command, looking, list));
  const line = group
    .command("line")
    .description("list the jobs that stand in line in a queue, the next one first")
    .argument("<queue>", "the name of the queue");
  addPageOptions(line)
    .addHelpText("after", lineExample)
    .action((queue: string, options: PageOptions) =>
      withBook(line, looking, async (book) => lineAnswer(line, queue, await book.queues.line(queue, options))),
    );
  group
    .command("pause")
    .description("start no more jobs of a queue until it is resumed")
    .argument("<queue>", "the name of the queue")
    .option("--note <text>", "why; explain shows it")
    .addHelpText("after", pauseExample)
    .action((queue: string, { note }: { note?: string }, command: Command) =>
      withBook(command, changing, (book) => change(book, queue, () => book.queues.pause(queue, note))),
    );
  group
    .command("resume")
    .description("let the jobs of a queue start again")
    .argument("<queue>", "the name of the queue")
    .addHelpText("after", resumeExample)
    .action((queue: string, _options: unknown, command: Command) =>
      withBook(command, changing, (book) => change(book, queue, () => book.queues.resume(queue))),
    );
  group
    .command("limit")
    .description("limit how many jobs of a queue run at the same time, and how many start per window of time")
    .argument("<queue>", "the name of the queue")
    .option("--concurrency <n>", 'how many may run at the same time, or "none"')
    .option("--rate <rate>", 'how many may start per window, such as 10/1m, or "none"')
    .addHelpText("after", limitExample)
    .action((queue: string, options: { concurrency?: string; rate?: string }, command: Command) => {
      const to = toLimits(options);
      return withBook(command, changing, (book) => change(book, queue, () => book.queues.limit(queue, to)));
    });
  group
    .command("normalise")
    .description("renumber the positions of a queue's open jobs; their order stays")
    .argument("<queue>", "the name of the queue")
    .option("--dry-run", "only count")
    .addHelpText("after", normaliseExample)
    .action((queue: string, { dryRun = false }: { dryRun?: boolean }, command: Command) =>
      withBook(command, changing, (book) => normalise(book, queue, dryRun)),
    );
}

async function normalise(book: Book, queue: string, dryRun: boolean): Promise<Answer> {
  const { jobs, changed } = await book.queues.normalise(queue, { dryRun });
  return {
    json: { queue, dryRun, jobs, changed },
    text: () => `${changed} of ${jobs} open jobs ${dryRun ? "would get" : "got"} another number`,
  };
}

function toLimits({ concurrency, rate }: { concurrency?: string; rate?: string }): LaneLimits {
  if (concurrency === undefined && rate === undefined) throw invalid("give --concurrency or --rate, or both");
  return {
    ...(concurrency === undefined
      ? {}
      : { concurrency: concurrency === "none" ? null : wholeNumber("--concurrency")(concurrency) }),
    ...(rate === undefined ? {} : { rate: rate === "none" ? null : toRate(rate) }),
  };
}

function toRate(text: string): NonNullable<LaneLimits["rate"]> {
  const [, max, per] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  if (max !== undefined && per !== undefined) return { max: Number(max), per };
  throw invalid(`--rate ${quote(text)} is not a rate: 10/1m lets ten start in each minute, none lifts it`);
}

async function list(book: Book): Promise<Answer> {
  const found = await book.queues.list();
  return {
    json: { items: found.map(toJson) },
    text: () => (found.length === 0 ? "This tenant has no queues yet." : table(found)),
  };
}

function lineAnswer(command: Command, queue: string, { items, next }: LinePage): Answer {
  return {
    json: { queue, items: items.map((each) => ({ ...each, createdAt: isoTime(each.createdAt) })), next },
    text: async () => {
      if (items.length === 0) return `Nothing stands in line in queue ${quote(queue)}, or nothing behind that cursor.`;
      const rows = items.map((each) => [
        ...[String(each.place), each.id, plainCell(each.name, 32), String(each.priority), timeCell(each.createdAt)],
      ]);
      const table = await showTable(["place", "id", "name", "priority", "created"], rows);
      return [table, ...nextPage(command, next)].join("\n");
    },
  };
}

async function change(book: Book, queue: string, make: () => Promise<void>): Promise<Answer> {
  await make();
  const [found] = (await book.queues.list()).filter((each) => each.queue === queue);
  if (found === undefined) throw new Error(`the queue ${quote(queue)} was changed and is not there`);
  return { json: toJson(found), text: () => table([found]) };
}

function toJson(queue: QueueRecord): Record<string, unknown> {
  const { paused } = queue;
  return {
    ...queue,
    oldestAt: isoOrNull(queue.oldestAt),
    paused: paused === null ? null : { ...paused, at: isoOrNull(paused.at) },
  };
}

async function table(found: readonly QueueRecord[]): Promise<string> {
  const head = ["queue", "waiting", "queued", "running", "failed", "oldest", "limit", "rate", "paused"];
  const rows = found.map(({ queue, concurrency, rate, paused, ...counts }) => [
    plainCell(queue, 40),
    ...[counts.waiting, counts.queued, counts.running, counts.failed].map(String),
    timeCell(counts.oldestAt),
    concurrency === null ? "" : String(concurrency),
    rate === null ? "" : `${rate.max}/${formatDuration(rate.perMs)}`,
    paused === null ? "" : plainCell(`${showTime(paused.at).ago}${paused.note === null ? "" : `: ${paused.note}`}`),
  ]);
  return showTable(head, rows);
}
