// listeners: who hears what, how far behind they are, and steering them.
import type { ListenerRecord } from "../index.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { flag, maybe, text, time, word } from "./field.ts";
import { hearing, hearingFields, lagOf } from "./listener-view.ts";
import { count, fields, table } from "./shown.ts";
import { verb } from "./verb.ts";

const name = text("the name of the listener", "name");
const moment = maybe(time("a moment, ISO 8601 with a zone"));
const event = maybe(text("an event, by its id", "id"));

export const listeners = {
  list: verb({
    words: "listeners list",
    http: "GET /listeners",
    role: "read",
    about: "list listeners by name, with their lag",
    input: {},
    examples: ["listeners list"],
    run: async (book) => ({ items: await book.listeners.list() }),
    show: ({ items }) => table(items, listenerColumns, { none: "There are no listeners.", least: ["oldest", "hears"] }),
  }),

  show: verb({
    words: "listeners show <name>",
    http: "GET /listeners/{name}",
    role: "read",
    about: "show everything about a listener",
    input: { name },
    examples: ["listeners show tell-stock"],
    run: (book, input) => book.listeners.get(input.name),
    show: (found) =>
      fields({
        listener: found.name,
        hears: found.topics.join(", "),
        ...hearingFields(found),
        ordered: found.ordered ? "by key" : null,
        "started from": found.startedFrom,
      }),
  }),

  lag: verb({
    words: "listeners lag <name>",
    http: "GET /listeners/{name}/lag",
    role: "read",
    about: "say how far behind a listener is",
    input: { name },
    examples: ["listeners lag tell-stock"],
    run: (book, input) => book.listeners.lag(input.name),
    show: (lag) => lagOf(lag),
  }),

  pause: verb({
    words: "listeners pause <name>",
    http: "POST /listeners/{name}/pause",
    role: "operate",
    about: "hold the deliveries of a listener back; it goes on collecting",
    input: { name, note: maybe(text("why; explain shows it", "text", limits.noteBytesMax)) },
    examples: ['listeners pause tell-stock --note "the stock service moves"'],
    async run(book, { name: wanted, note }) {
      await book.listeners.pause(wanted, note);
      return { name: wanted, paused: true, note: note ?? null };
    },
    show: (done) => `${done.name} is paused`,
  }),

  resume: verb({
    words: "listeners resume <name>",
    http: "POST /listeners/{name}/resume",
    role: "operate",
    about: "let the deliveries of a listener go on",
    input: { name },
    examples: ["listeners resume tell-stock"],
    async run(book, { name: wanted }) {
      await book.listeners.resume(wanted);
      return { name: wanted, paused: false };
    },
    show: (done) => `${done.name} is not paused`,
  }),

  rewind: verb({
    words: "listeners rewind <name>",
    http: "POST /listeners/{name}/rewind",
    role: "operate",
    about: "deliver everything from a position on once more",
    more: `Give one position. A listener that still catches up can only be set back to the beginning: anything else
is a conflict (exit code 5).`,
    input: { name, to: maybe(word("the beginning of what is kept", ["beginning"])), time: moment, event },
    examples: ["listeners rewind tell-stock --to beginning", "listeners rewind tell-stock --time 2026-03-01T00:00:00Z"],
    check: (input) => void toPosition(input, "beginning"),
    async run(book, { name: wanted, ...given }) {
      const to = toPosition(given, "beginning");
      await book.listeners.rewind(wanted, to);
      return { name: wanted, to };
    },
    show: (done) => `${done.name} is set back`,
  }),

  skip: verb({
    words: "listeners skip <name>",
    http: "POST /listeners/{name}/skip",
    role: "operate",
    about: "pass over what waits before a position",
    more: "Give one position. Deliveries that run go on, and dead letters stay.",
    input: { name, to: maybe(word("everything that waits", ["now"])), time: moment, event },
    examples: ["listeners skip tell-stock --to now", "listeners skip tell-stock --event o-17-paid"],
    check: (input) => void toPosition(input, "now"),
    async run(book, { name: wanted, ...given }) {
      const to = toPosition(given, "now");
      return { name: wanted, to, skipped: (await book.listeners.skip(wanted, to)).skipped };
    },
    show: (done) => `${done.name} passes over ${count(done.skipped, "delivery", "deliveries")}`,
  }),

  remove: verb({
    words: "listeners remove <name>",
    http: "POST /listeners/{name}/remove",
    role: "operate",
    about: "end a listener: nothing more is collected for it",
    more: "A program that registers the listener again brings it back, from where that program says it starts.",
    input: { name, allTenants: maybe(flag("end one that is for all tenants for each of them")) },
    examples: ["listeners remove tell-stock", "listeners remove tell-stock --all-tenants"],
    async run(book, { name: wanted, allTenants = false }, { tenant }) {
      // Whoever speaks for one tenant must not end what others listen to.
      if (allTenants && tenant !== null) throw invalid("all tenants are meant, so name no tenant");
      await book.listeners.remove(wanted, allTenants ? { tenants: "all" } : {});
      return { name: wanted, removed: true };
    },
    show: (done) => `${done.name} is removed`,
  }),
};

const listenerColumns = {
  listener: (each: ListenerRecord) => each.name,
  hears: hearing.topics,
  state: hearing.state,
  lag: hearing.lag,
  oldest: hearing.oldest,
  "dead letters": (each: ListenerRecord) => each.deadLetters,
};

type Position = { readonly to?: string; readonly time?: string; readonly event?: string };

/** Exactly one position: none would mean everything, and of two the user means one. */
function toPosition<Word extends string>(
  { to, time: at, event: id }: Position,
  all: Word,
): Word | { time: string } | { event: string } {
  const given = [to, at, id].filter((each) => each !== undefined);
  if (given.length !== 1) {
    const problem = given.length === 0 ? "no position" : "more than one position";
    throw invalid(`${problem} given: give to (${all}), time or event`);
  }
  if (at !== undefined) return { time: at };
  return id === undefined ? all : { event: id };
}
