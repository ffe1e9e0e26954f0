// dead-letters: deliveries that failed for the last time, and what is done about them.
import type { Book, DeadLetterRecord } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { listed, paged } from "../list.ts";
import { id, maybe, text, whole, word, type Given } from "../field.ts";
import { applying, rehearsing, topic } from "../shared-fields.ts";
import { asJson, copied, count, fields, section, state, when, type Part } from "../shown.ts";
import { exampleId, ofCall, operate, read } from "../verb.ts";

const which = {
  listener: maybe(text("only those of this listener", "name")),
  topic: maybe(topic("only those of this topic")),
  error: maybe(text("only those that failed with this type of error", "type")),
  message: maybe(text("and with this message", "text", limits.errorMessageBytesMax)),
};
const one = maybe(text("the id of a dead letter", "id"));

export const deadLetters = {
  list: paged({
    words: "dead-letters list",
    about: "list dead letters, newest first",
    more: "Those that recovered or were discarded are listed when --status asks for them.",
    input: {
      ...which,
      status: maybe(
        word("only of this status (default: dead and redriving)", ["dead", "redriving", "recovered", "discarded"]),
      ),
    },
    examples: ["dead-letters list --listener tell-stock --error TimeoutError", "dead-letters list --status discarded"],
    check: checkWhich,
    find: (book, input) => book.deadLetters.list(toFilter(input)),
    columns: {
      id: (each) => copied(each.id),
      listener: (each) => copied(each.listener),
      topic: (each) => each.topic,
      status: (each) => state(each.status),
      tries: (each) => each.attempts,
      error: errorOf,
      failed: (each) => when(each.failedAt),
    },
    none: "There are no such dead letters.",
    least: ["topic", "tries", "failed"],
  }),

  groups: listed({
    words: "dead-letters groups",
    http: "GET /dead-letter-groups",
    about: "count dead letters by listener and error, the most frequent first",
    find: (book) => book.deadLetters.groups(),
    columns: {
      count: (each) => each.count,
      listener: (each) => copied(each.listener),
      error: errorOf,
      first: (each) => when(each.firstFailedAt),
      last: (each) => when(each.lastFailedAt),
    },
    none: "There are no dead letters.",
    least: ["first", "last"],
  }),

  show: read({
    words: "dead-letters show <id>",
    about: "show a dead letter with its payload and its error",
    input: { id: id("dead letter") },
    run: (book, input) => book.deadLetters.get(input.id),
    show: letterPage,
  }),

  redrive: operate({
    words: "dead-letters redrive [id]",
    background: "id",
    about: "deliver once more: one by its id, or those of a filter",
    more: "A letter that fails again stays the same letter. One that is not dead is a conflict (exit code 5).",
    input: {
      id: one,
      ...which,
      rate: maybe(whole("how many per second (default: all at once)", 1)),
      ...rehearsing,
    },
    examples: [
      "dead-letters redrive --listener tell-stock --error TimeoutError --dry-run",
      "dead-letters redrive --listener tell-stock --rate 10",
      `dead-letters redrive ${exampleId}`,
    ],
    check(input) {
      checkOneOrWhich(input);
      if (input.id !== undefined && input.rate !== undefined) throw invalid("a rate is for many: leave it out");
    },
    async run(book, { id: wanted, rate, dryRun = false, ...filter }, call) {
      if (wanted === undefined) {
        const options = { ...ofCall(call), dryRun, ...(rate === undefined ? {} : { rate }) };
        const { count: letters } = await book.deadLetters.redriveAll(toFilter(filter), options);
        return { dryRun, count: letters, jobId: null };
      }
      if (dryRun) return { dryRun, count: await countDead(book, wanted), jobId: null };
      return { dryRun, count: 1, jobId: (await book.deadLetters.redrive(wanted)).jobId };
    },
    show: ({ dryRun, count: letters, jobId }) =>
      jobId === null
        ? `${count(letters, "dead letter")} ${dryRun ? "would be" : be(letters)} tried again`
        : `1 dead letter is tried again, by job ${jobId}`,
  }),

  discard: operate({
    words: "dead-letters discard [id]",
    destroys: true,
    background: "id",
    about: "give up for good: one by its id, or those of a filter",
    more: `It says how many there are, and gives them up with --apply, which needs a reason. What waits behind them,
in order, goes on. One that is not dead is a conflict (exit code 5).`,
    input: {
      id: one,
      ...which,
      reason: maybe(text("why, for those who look for it later", "text", limits.errorMessageBytesMax)),
      ...applying,
    },
    examples: [
      "dead-letters discard --listener tell-stock --error TimeoutError",
      `dead-letters discard ${exampleId} --reason "the order was cancelled" --apply`,
    ],
    check(input) {
      checkOneOrWhich(input);
      if (input.apply === true && (input.reason ?? "").trim() === "") {
        throw invalid("give a reason: why they are given up");
      }
    },
    async run(book, { id: wanted, reason = "", apply = false, ...filter }, call) {
      if (wanted === undefined) {
        const done = await book.deadLetters.discardAll(toFilter(filter), reason, { ...ofCall(call), dryRun: !apply });
        return { dryRun: !apply, count: done.count };
      }
      if (!apply) return { dryRun: true, count: await countDead(book, wanted) };
      await book.deadLetters.discard(wanted, reason);
      return { dryRun: false, count: 1 };
    },
    show: ({ dryRun, count: letters }) =>
      dryRun
        ? `${count(letters, "dead letter")} would be discarded; do it with --apply and --reason`
        : `${count(letters, "dead letter")} ${be(letters)} discarded`,
  }),
};

type Which = Given<typeof which>;

function checkWhich({ error, message }: Which): void {
  if (message !== undefined && error === undefined) {
    throw invalid("a message needs the type of error it belongs to: give error, too");
  }
}

/** An id or a filter: neither would mean everything. */
function checkOneOrWhich(input: Which & { readonly id?: string }): void {
  checkWhich(input);
  const isFilter = (input.listener ?? input.topic ?? input.error) !== undefined;
  if ((input.id !== undefined) === isFilter) {
    throw invalid("give the id of a dead letter, or say which by listener, topic and error: one or the other");
  }
}

/** The filter of the library, with whatever else was asked. */
function toFilter<Rest extends object>({ error, message, ...rest }: Rest & Pick<Which, "error" | "message">) {
  const type = error === undefined ? {} : { error: { type: error, ...(message === undefined ? {} : { message }) } };
  return { ...rest, ...type };
}

// One that is not dead would be refused.
async function countDead(book: Book, wanted: string): Promise<number> {
  return (await book.deadLetters.get(wanted)).status === "dead" ? 1 : 0;
}

function be(number: number): string {
  return number === 1 ? "is" : "are";
}

function errorOf({ error }: Pick<DeadLetterRecord, "error">): string {
  return `${error.type}: ${error.message}`;
}

function letterPage(letter: DeadLetterRecord): Part[] {
  const facts = fields({
    "dead letter": copied(letter.id),
    status: state(letter.status),
    listener: letter.listener,
    event: copied(letter.eventId),
    topic: letter.topic,
    job: copied(letter.jobId),
    tries: letter.attempts,
    redrives: letter.redrives,
    "first failed": letter.firstFailedAt === letter.failedAt ? null : when(letter.firstFailedAt),
    failed: when(letter.failedAt),
    error: errorOf(letter),
    ended: when(letter.endedAt),
    reason: letter.reason,
  });
  return [facts, section("payload", asJson(letter.payload))];
}
