// daybook sinks: what goes to the outside, how far behind it is, and holding it back.
import type { Command } from "commander";
import { isoTime } from "../core/time.ts";
import type { SinkRecord } from "../book/sinks.ts";
import { hearingCells, listenerJson, stateWords } from "./event-words.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showFields, showTable, timeCell } from "./show.ts";
import { changing, looking, withBook } from "./with-book.ts";

const groupExample = `
A sink is a listener that hands events to the outside (docs/sinks.md). By the name "sink:<name>" it can be set back,
skipped and removed like any other, and what could not go out is a dead letter.

Example:
  $ daybook sinks list --book shop.db
  $ daybook listeners rewind --book shop.db sink:warehouse --to beginning
  $ daybook dead-letters redrive --book shop.db --listener sink:warehouse --dry-run`;

export function sinks(program: Command): void {
  const group = program
    .command("sinks")
    .description("list, show, pause and resume what hands events to the outside")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  group
    .command("list")
    .description("list sinks by name, with their lag and when something last went out")
    .action((_options: object, command: Command) =>
      withBook(command, looking, async (book) => {
        const items = await book.sinks.list();
        return {
          json: { items: items.map(sinkJson) },
          text: () => (items.length === 0 ? "There are no sinks." : sinkTable(items)),
        };
      }),
    );
  named(group, "show", "show everything about a sink").action((name: string, _options: object, command: Command) =>
    withBook(command, looking, async (book) => {
      const sink = await book.sinks.get(name);
      return { json: sinkJson(sink), text: () => sinkWords(sink) };
    }),
  );
  named(group, "lag", "say how far behind a sink is").action((name: string, _options: object, command: Command) =>
    withBook(command, looking, async (book) => {
      const lag = await book.sinks.lag(name);
      return { json: lag, text: () => lagWords(lag) };
    }),
  );
  named(group, "pause", "let nothing more out; the sink goes on collecting")
    .option("--note <text>", "why")
    .action((name: string, { note }: { note?: string }, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.sinks.pause(name, note);
        return { json: { name, paused: true }, text: () => `${name} is paused` };
      }),
    );
  named(group, "resume", "let it go on").action((name: string, _options: object, command: Command) =>
    withBook(command, changing, async (book) => {
      await book.sinks.resume(name);
      return { json: { name, paused: false }, text: () => `${name} is resumed` };
    }),
  );
}

function named(group: Command, verb: string, description: string): Command {
  return group.command(verb).description(description).argument("<name>", "the name of the sink");
}

function sinkJson(sink: SinkRecord): Record<string, unknown> {
  return { ...listenerJson(sink), lastPublishedAt: isoOrNull(sink.lastPublishedAt) };
}

function lagWords(lag: SinkRecord["lag"]): string {
  return lag.events === 0
    ? "nothing waits"
    : `${lag.events} events, the oldest published ${Math.round(lag.seconds)} s ago`;
}

function sinkTable(all: readonly SinkRecord[]): Promise<string> {
  return showTable(
    ["sink", "takes", "state", "lag", "oldest", "last out", "dead letters"],
    all.map((each) => [...hearingCells(each), timeCell(each.lastPublishedAt), String(each.deadLetters)]),
  );
}

function sinkWords(sink: SinkRecord): Promise<string> {
  const { paused, lastPublishedAt: last } = sink;
  const fields: readonly (readonly [string, string | null])[] = [
    ["sink", plainCell(sink.name, 200)],
    ["takes", plainCell(sink.topics.join(", "), 2000)],
    ["state", stateWords(sink)],
    ["paused", paused === null ? null : plainCell(`${isoTime(paused.at)} ${paused.note ?? ""}`, 2000)],
    ["lag", lagWords(sink.lag)],
    ["last out", last === null ? null : isoTime(last)],
    ["dead letters", String(sink.deadLetters)],
    ["attempts", String(sink.attempts)],
    ["queue", plainCell(sink.queue, 200)],
    ["for all tenants", sink.forAllTenants ? "yes" : null],
    ["since", isoTime(sink.registeredAt)],
    ["listener", plainCell(`sink:${sink.name}`, 200)],
  ];
  return showFields(fields.filter((field): field is readonly [string, string] => field[1] !== null));
}
