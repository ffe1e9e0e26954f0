// sinks: what goes to the outside, how far behind it is, and holding it back.
import type { SinkRecord } from "../index.ts";
import { limits } from "../core/limits.ts";
import { maybe, text } from "./field.ts";
import { hearing, hearingFields, lagOf } from "./listener-view.ts";
import { fields, table, time } from "./shown.ts";
import { verb } from "./verb.ts";

const name = text("the name of the sink", "name");

export const sinks = {
  list: verb({
    words: "sinks list",
    http: "GET /sinks",
    role: "read",
    about: "list sinks by name, with their lag and when something last went out",
    input: {},
    examples: ["sinks list"],
    run: async (book) => ({ items: await book.sinks.list() }),
    show: ({ items }) =>
      table(items, sinkColumns, { none: "There are no sinks.", least: ["oldest", "takes", "last out"] }),
  }),

  show: verb({
    words: "sinks show <name>",
    http: "GET /sinks/{name}",
    role: "read",
    about: "show everything about a sink",
    input: { name },
    examples: ["sinks show warehouse"],
    run: (book, input) => book.sinks.get(input.name),
    show: (sink) =>
      fields({
        sink: sink.name,
        takes: sink.topics.join(", "),
        ...hearingFields(sink),
        "last out": time(sink.lastPublishedAt),
        listener: `sink:${sink.name}`,
      }),
  }),

  lag: verb({
    words: "sinks lag <name>",
    http: "GET /sinks/{name}/lag",
    role: "read",
    about: "say how far behind a sink is",
    input: { name },
    examples: ["sinks lag warehouse"],
    run: (book, input) => book.sinks.lag(input.name),
    show: (lag) => lagOf(lag),
  }),

  pause: verb({
    words: "sinks pause <name>",
    http: "POST /sinks/{name}/pause",
    role: "operate",
    about: "let nothing more out; the sink goes on collecting",
    input: { name, note: maybe(text("why; explain shows it", "text", limits.noteBytesMax)) },
    examples: ['sinks pause warehouse --note "they move"'],
    async run(book, { name: wanted, note }) {
      await book.sinks.pause(wanted, note);
      return { name: wanted, paused: true, note: note ?? null };
    },
    show: (done) => `${done.name} is paused`,
  }),

  resume: verb({
    words: "sinks resume <name>",
    http: "POST /sinks/{name}/resume",
    role: "operate",
    about: "let what the sink has collected go out",
    input: { name },
    examples: ["sinks resume warehouse"],
    async run(book, { name: wanted }) {
      await book.sinks.resume(wanted);
      return { name: wanted, paused: false };
    },
    show: (done) => `${done.name} is not paused`,
  }),
};

const sinkColumns = {
  sink: (each: SinkRecord) => each.name,
  takes: hearing.topics,
  state: hearing.state,
  lag: hearing.lag,
  oldest: hearing.oldest,
  "last out": (each: SinkRecord) => time(each.lastPublishedAt),
  "dead letters": (each: SinkRecord) => each.deadLetters,
};
