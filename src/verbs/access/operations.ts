// operations: what takes long, was begun through a server, and is looked at from elsewhere.
import type { Operation } from "../../index.ts";
import { limits } from "../../core/limits.ts";
import { id, maybe, text, word } from "../field.ts";
import { paged } from "../list.ts";
import { asJson, copied, fields, section, state, when, type Part } from "../shown.ts";
import { exampleId, operate, read } from "../verb.ts";

const statuses = ["running", "completed", "failed", "cancelled", "lost"] as const;

export const operations = {
  list: paged({
    words: "operations list",
    about: "list what takes long and was begun through a server, the newest first",
    more: `An operation is running, completed, failed, cancelled, or lost: its process ended before it did. It stays for
30 days.`,
    input: {
      status: maybe(word("only those of this status", statuses)),
      verb: maybe(text("only those of this verb, such as jobs.cancelAll", "verb", limits.nameBytesMax)),
    },
    examples: ["operations list --status running"],
    find: (book, filter) => book.operations.list(filter),
    columns: {
      id: (each) => copied(each.id),
      verb: (each) => each.verb,
      tenant: (each) => each.tenant,
      status: (each) => state(each.status),
      done: doneOf,
      started: (each) => when(each.startedAt),
      finished: (each) => when(each.finishedAt),
      by: ({ by }) => by?.name ?? null,
    },
    none: "There are no such operations.",
    least: ["by", "tenant", "finished"],
  }),

  show: read({
    words: "operations show <id>",
    about: "show how far an operation is, or what became of it",
    input: { id: id("operation") },
    run: (book, input): Promise<Operation> => book.operations.get(input.id),
    show: operationPage,
  }),

  cancel: operate({
    words: "operations cancel <id>",
    about: "ask an operation to end",
    more: `It ends after the slice that it is at, and what it has done until then stays. One that has ended is a conflict
(exit code 5).`,
    input: { id: id("operation") },
    examples: [`operations cancel ${exampleId}`],
    run: (book, input): Promise<Operation> => book.operations.cancel(input.id),
    show: ({ id: asked, status }) =>
      status === "running" ? `${asked} was asked to end` : `${asked} has ended: ${status}`,
  }),
};

function operationPage(operation: Operation): readonly Part[] {
  const { result, input, error } = operation;
  const facts = fields({
    id: copied(operation.id),
    verb: operation.verb,
    tenant: operation.tenant,
    by: operation.by?.name ?? null,
    status: state(operation.status),
    done: doneOf(operation),
    started: when(operation.startedAt),
    "last news": operation.finishedAt === null ? when(operation.updatedAt) : null,
    "asked to end": when(operation.cancelRequestedAt),
    finished: when(operation.finishedAt),
    error: error === null ? null : `${error.code}: ${error.message}`,
    "answer not kept": operation.resultRefused,
  });
  const parts = { input, answer: result };
  const sections = Object.entries(parts).flatMap(([title, value]) =>
    value === null || value === undefined ? [] : [section(title, asJson(value))],
  );
  return [facts, ...sections];
}

function doneOf({ done, total }: Operation): string | null {
  if (total !== null) return `${done} of ${total}`;
  return done === 0 ? null : String(done);
}
