// daybook dead-letters: deliveries that nobody could take, and what is done about them.
import type { Command } from "commander";
import { invalid } from "../core/error.ts";
import type { DeadLetterRecord, LetterFilter } from "../events/read-dead-letter.ts";
import type { Answer } from "./answer.ts";
import { letterJson, letterTable, letterWords } from "./event-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "./page.ts";
import { plainCell, showTable } from "./show.ts";
import { wholeNumber } from "./whole-number.ts";
import { changing, looking, withBook } from "./with-book.ts";

const groupExample = `
A delivery that failed for the last time waits here until it is redriven or discarded; it keeps its event
and its job in the book (docs/events.md).

Example:
  $ daybook dead-letters list --book shop.db --by-error
  $ daybook dead-letters redrive --book shop.db --listener tell-stock --error TimeoutError --dry-run`;

type Which = {
  readonly listener?: string;
  readonly topic?: string;
  readonly error?: string;
  readonly message?: string;
};

export function deadLetters(program: Command): void {
  const group = program
    .command("dead-letters")
    .description("list, redrive and discard deliveries that failed for the last time")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  for (const add of [list, show, redrive, discard]) add(group);
}

function list(group: Command): void {
  const command = group.command("list").description("list dead letters, the newest first, or counted by error");
  addWhich(addPageOptions(command))
    .option("--by-error", "count them by listener and error")
    .action(({ byError, limit, after, ...which }: PageOptions & Which & { byError?: true }) =>
      withBook(command, looking, async (book) => {
        if (byError === true) {
          const groups = await book.deadLetters.groups();
          const rows = groups.map(({ listener, error, count }) => [
            String(count),
            plainCell(listener),
            plainCell(`${error.type}: ${error.message}`, 100),
          ]);
          return { json: { groups }, text: () => showTable(["count", "listener", "error"], rows) };
        }
        const page = await book.deadLetters.list({
          ...toFilter(which),
          limit,
          ...(after === undefined ? {} : { after }),
        });
        return {
          json: { items: page.items.map(letterJson), next: page.next },
          text: async () =>
            page.items.length === 0
              ? "There are no such dead letters."
              : [await letterTable(page.items), ...nextPage(command, page.next)].join("\n"),
        };
      }),
    );
}

function show(group: Command): void {
  group
    .command("show")
    .description("show a dead letter")
    .argument("<id>", "the id of the dead letter")
    .action((id: string, _options: object, command: Command) =>
      withBook(command, looking, async (book) => {
        const letter = await book.deadLetters.get(id);
        return { json: letterJson(letter), text: () => letterWords(letter) };
      }),
    );
}

function redrive(group: Command): void {
  const command = group
    .command("redrive")
    .description("deliver once more: one by its id, or those of a filter")
    .argument("[id]", "the id of a dead letter");
  addWhich(command)
    .option("--rate <n>", "how many per second (default: all at once)", wholeNumber("--rate"))
    .option("--dry-run", "only say how many there are")
    .action((id: string | undefined, { rate, dryRun, ...which }: Which & { rate?: number; dryRun?: true }) => {
      needOne(id, which);
      return withBook(command, changing, async (book) => {
        if (id !== undefined && dryRun === true) return wouldBe(await book.deadLetters.get(id), "tried again");
        if (id !== undefined) {
          const { jobId } = await book.deadLetters.redrive(id);
          return { json: { count: 1, jobId }, text: () => `${id} is tried again by job ${jobId}` };
        }
        const options = { ...(rate === undefined ? {} : { rate }), ...(dryRun === undefined ? {} : { dryRun }) };
        const { count } = await book.deadLetters.redriveAll(toFilter(which), options);
        return { json: { count }, text: () => `${count} ${dryRun === true ? "would be" : "are"} tried again` };
      });
    });
}

function discard(group: Command): void {
  const command = group
    .command("discard")
    .description("give up: one by its id, or those of a filter")
    .argument("[id]", "the id of a dead letter");
  addWhich(command)
    .option("--reason <text>", "why, for those who look for it later")
    .option("--dry-run", "only say how many there are")
    .action((id: string | undefined, { reason, dryRun, ...which }: Which & { reason?: string; dryRun?: true }) => {
      needOne(id, which);
      if (reason === undefined && dryRun !== true) throw invalid("give --reason: why they are given up");
      return withBook(command, changing, async (book) => {
        if (id !== undefined && dryRun === true) return wouldBe(await book.deadLetters.get(id), "discarded");
        if (id !== undefined) {
          await book.deadLetters.discard(id, reason ?? "");
          return { json: { count: 1 }, text: () => `${id} is discarded` };
        }
        const { count } = await book.deadLetters.discardAll(toFilter(which), reason ?? "", { dryRun: dryRun ?? false });
        return { json: { count }, text: () => `${count} ${dryRun === true ? "would be" : "are"} discarded` };
      });
    });
}

// One that is not dead would be refused.
function wouldBe({ status }: DeadLetterRecord, done: string): Answer {
  const count = status === "dead" ? 1 : 0;
  return { json: { count }, text: () => `${count} would be ${done}` };
}

function addWhich(command: Command): Command {
  return command
    .option("--listener <name>", "only those of this listener")
    .option("--topic <topic>", "only those of this topic")
    .option("--error <type>", "only those that failed with this type of error")
    .option("--message <text>", "and this message");
}

function toFilter({ listener, topic, error, message }: Which): LetterFilter {
  if (message !== undefined && error === undefined) throw invalid("--message needs --error, the type it belongs to");
  return {
    ...(listener === undefined ? {} : { listener }),
    ...(topic === undefined ? {} : { topic }),
    ...(error === undefined ? {} : { error: { type: error, ...(message === undefined ? {} : { message }) } }),
  };
}

function needOne(id: string | undefined, which: Which): void {
  if ((id === undefined) !== (Object.keys(which).length === 0)) return;
  throw invalid("give the id of a dead letter, or a filter: --listener, --topic, --error");
}
