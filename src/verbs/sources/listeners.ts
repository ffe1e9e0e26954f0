// listeners and sinks: what hears events, how far behind it is, and steering it. A sink hands events to the outside.
import type { AppListener, Lag, ListenerRecord, SinkRecord } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { flag, maybe, text, time, word } from "../field.ts";
import { copied, count, fields, section, table, when, words, type Cell } from "../shown.ts";
import { operate, read } from "../verb.ts";
import { applying, noted } from "../shared-fields.ts";
import { listed } from "../list.ts";

const name = text("the name of the listener", "name");
const sink = text("the name of the sink", "name");
const moment = maybe(time("a moment, ISO 8601 with a zone"));
const event = maybe(text("an event, by its id", "id"));

type Hearing = ListenerRecord | SinkRecord;

/** Cells of a table. */
const hearing = {
  topics: (each: Hearing) => each.topics.join(", "),
  state: stateOf,
  lag: (each: Hearing) => each.lag.events,
  oldest: (each: Hearing) => (each.lag.events === 0 ? null : seconds(each.lag)),
};

const durableColumns = {
  listener: (each: ListenerRecord) => copied(each.name),
  hears: hearing.topics,
  state: hearing.state,
  lag: hearing.lag,
  oldest: hearing.oldest,
  "dead letters": (each: ListenerRecord) => each.deadLetters,
};

const liveColumns = {
  app: ({ app, instance }: AppListener) => copied(`${app}[${instance}]`),
  listener: (each: AppListener) => copied(each.name),
  hears: (each: AppListener) => each.topics.join(", "),
  where: (each: AppListener) => each.where,
  processes: ({ sessionIds }: AppListener) => sessionIds.length,
};

export const listeners = {
  list: read({
    words: "listeners list",
    about: "list listeners by name, with their lag, and the live listeners of apps that run",
    more: `A live listener hears in its process, has no deliveries and so no lag. Those that belong to no app are known to
their own process alone.`,
    run: async (book) => ({ items: await book.listeners.list(), live: await book.apps.listeners() }),
    show: ({ items, live }) => [
      table(items, durableColumns, { none: "There are no durable listeners.", least: ["oldest", "hears"] }),
      ...(live.length === 0 ? [] : [section("live listeners of apps", table(live, liveColumns, { least: ["where"] }))]),
    ],
  }),

  show: read({
    words: "listeners show <name>",
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

  lag: read({
    words: "listeners lag <name>",
    about: "say how far behind a listener is",
    input: { name },
    examples: ["listeners lag tell-stock"],
    run: (book, input) => book.listeners.lag(input.name),
    show: (lag) => lagOf(lag),
  }),

  pause: operate({
    words: "listeners pause <name>",
    about: "hold the deliveries of a listener back; it goes on collecting",
    input: { name, ...noted },
    examples: ['listeners pause tell-stock --note "the stock service moves"'],
    async run(book, { name: wanted, note }) {
      await book.listeners.pause(wanted, note);
      return { name: wanted, paused: true, note: note ?? null };
    },
    show: (done) => `${done.name} is paused`,
  }),

  resume: operate({
    words: "listeners resume <name>",
    about: "let the deliveries of a listener go on",
    input: { name },
    examples: ["listeners resume tell-stock"],
    async run(book, { name: wanted }) {
      await book.listeners.resume(wanted);
      return { name: wanted, paused: false };
    },
    show: (done) => `${done.name} is not paused`,
  }),

  rewind: operate({
    words: "listeners rewind <name>",
    about: "deliver to a listener, once more, everything from a position on",
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

  skip: operate({
    words: "listeners skip <name>",
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

  remove: operate({
    words: "listeners remove <name>",
    destroys: true,
    about: "end a listener: nothing more is collected for it",
    more: `It ends the listener with --apply, and cancels its deliveries that wait. A program that registers the listener again brings it back, from where that
program says it starts.`,
    input: { name, allTenants: maybe(flag("end one that is for all tenants for each of them")), ...applying },
    examples: ["listeners remove tell-stock", "listeners remove tell-stock --all-tenants --apply"],
    async run(book, { name: wanted, allTenants = false, apply = false }, { tenant }) {
      // A caller that speaks for one tenant must not end what others listen to.
      if (allTenants && tenant !== null) throw invalid("all tenants are meant, so name no tenant");
      if (!apply) {
        const { lag } = await book.listeners.get(wanted);
        return { name: wanted, dryRun: true, removed: false, waiting: lag.events };
      }
      const { cancelled } = await book.listeners.remove(wanted, allTenants ? { tenants: "all" } : {});
      return { name: wanted, dryRun: false, removed: true, waiting: cancelled };
    },
    show({ dryRun, name: gone, waiting }) {
      const deliveries =
        waiting === 0
          ? ""
          : `, with ${count(waiting, "delivery", "deliveries")} that ${waiting === 1 ? "waits" : "wait"}`;
      return dryRun
        ? `${gone} would be removed${deliveries}; remove it with --apply`
        : `${gone} is removed${deliveries.replace(/ waits?$/, " waited")}`;
    },
  }),
};

export const sinks = {
  list: listed({
    words: "sinks list",
    about: "list sinks by name, with their lag and when something last went out",
    find: (book) => book.sinks.list(),
    columns: {
      sink: (each) => copied(each.name),
      takes: hearing.topics,
      state: hearing.state,
      lag: hearing.lag,
      oldest: hearing.oldest,
      "last out": (each) => when(each.lastPublishedAt),
      "dead letters": (each) => each.deadLetters,
    },
    none: "There are no sinks.",
    least: ["oldest", "takes", "last out"],
  }),

  show: read({
    words: "sinks show <name>",
    about: "show everything about a sink",
    input: { name: sink },
    examples: ["sinks show warehouse"],
    run: (book, input) => book.sinks.get(input.name),
    show: (sink) =>
      fields({
        sink: sink.name,
        takes: sink.topics.join(", "),
        where: sink.where,
        ...hearingFields(sink),
        "last out": when(sink.lastPublishedAt),
        listener: `sink:${sink.name}`,
      }),
  }),

  lag: read({
    words: "sinks lag <name>",
    about: "say how far behind a sink is",
    input: { name: sink },
    examples: ["sinks lag warehouse"],
    run: (book, input) => book.sinks.lag(input.name),
    show: (lag) => lagOf(lag),
  }),

  pause: operate({
    words: "sinks pause <name>",
    about: "let nothing more out; the sink goes on collecting",
    input: { name: sink, ...noted },
    examples: ['sinks pause warehouse --note "they move"'],
    async run(book, { name: wanted, note }) {
      await book.sinks.pause(wanted, note);
      return { name: wanted, paused: true, note: note ?? null };
    },
    show: (done) => `${done.name} is paused`,
  }),

  resume: operate({
    words: "sinks resume <name>",
    about: "let what the sink has collected go out",
    input: { name: sink },
    examples: ["sinks resume warehouse"],
    async run(book, { name: wanted }) {
      await book.sinks.resume(wanted);
      return { name: wanted, paused: false };
    },
    show: (done) => `${done.name} is not paused`,
  }),
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

function stateOf({ state, paused, hosted }: Hearing): string {
  return [state.replace("_", " "), ...(paused === null ? [] : ["paused"]), ...(hosted ? [] : ["no host"])].join(", ");
}

function lagOf(lag: Lag): string {
  return lag.events === 0 ? "nothing waits" : `${count(lag.events, "event")}, the oldest published ${seconds(lag)} ago`;
}

function seconds(lag: Lag): string {
  return `${Math.round(lag.seconds)} s`;
}

function hearingFields(of: Hearing): { [name: string]: Cell } {
  const { paused } = of;
  return {
    state: stateOf(of),
    paused: paused === null ? null : words(when(paused.at), paused.note),
    lag: lagOf(of.lag),
    "dead letters": of.deadLetters,
    attempts: of.attempts,
    queue: of.queue,
    "for all tenants": of.forAllTenants ? "yes" : null,
    since: when(of.registeredAt),
  };
}
