// daybook listeners: who hears what, how far behind they are, and steering them.
import type { Command } from "commander";
import { invalid } from "../core/error.ts";
import type { Answer } from "./answer.ts";
import { listenerJson, listenerTable } from "./event-words.ts";
import { changing, looking, withBook } from "./with-book.ts";

const groupExample = `
A listener is known by its name, and collects also while nobody runs it (docs/events.md).

Example:
  $ daybook listeners list --book shop.db
  $ daybook listeners rewind --book shop.db tell-stock --to beginning`;

type Position = { readonly to?: string; readonly time?: string; readonly event?: string };

export function listeners(program: Command): void {
  const group = program
    .command("listeners")
    .description("list, pause, set back and skip listeners")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  group
    .command("list")
    .description("list listeners by name, with their lag")
    .action((_options: object, command: Command) =>
      withBook(command, looking, async (book) => {
        const items = await book.listeners.list();
        return {
          json: { items: items.map(listenerJson) },
          text: () => (items.length === 0 ? "There are no listeners." : listenerTable(items)),
        };
      }),
    );
  named(group, "lag", "say how far behind a listener is").action((name: string, _options: object, command: Command) =>
    withBook(command, looking, async (book) => {
      const lag = await book.listeners.lag(name);
      return { json: lag, text: () => `${lag.events} events, the oldest published ${Math.round(lag.seconds)} s ago` };
    }),
  );
  named(group, "pause", "hold the deliveries of a listener back; it goes on collecting")
    .option("--note <text>", "why")
    .action((name: string, { note }: { note?: string }, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.listeners.pause(name, note);
        return said({ name, paused: true }, `${name} is paused`);
      }),
    );
  named(group, "resume", "let them go on").action((name: string, _options: object, command: Command) =>
    withBook(command, changing, async (book) => {
      await book.listeners.resume(name);
      return said({ name, paused: false }, `${name} is resumed`);
    }),
  );
  placed(named(group, "rewind", "deliver everything from a position on once more"), "beginning").action(
    (name: string, position: Position, command: Command) =>
      withBook(command, changing, async (book) => {
        const to = toPosition(position, "beginning");
        await book.listeners.rewind(name, to);
        return said({ name, to }, `${name} is set back`);
      }),
  );
  placed(named(group, "skip", "pass over what waits before a position"), "now").action(
    (name: string, position: Position, command: Command) =>
      withBook(command, changing, async (book) => {
        const to = toPosition(position, "now");
        const { skipped } = await book.listeners.skip(name, to);
        return said({ name, to, skipped }, `${name} passes over ${skipped} deliveries`);
      }),
  );
  named(group, "remove", "end a listener: nothing more is collected for it")
    .option("--all-tenants", "one for all tenants ends for each of them")
    .action((name: string, { allTenants }: { allTenants?: true }, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.listeners.remove(name, allTenants === true ? { tenants: "all" } : {});
        return said({ name, removed: true }, `${name} is removed`);
      }),
    );
}

function named(group: Command, verb: string, description: string): Command {
  return group.command(verb).description(description).argument("<name>", "the name of the listener");
}

function placed(command: Command, word: string): Command {
  return command
    .option("--to <word>", `"${word}"`)
    .option("--time <time>", "a moment, ISO 8601 with a zone")
    .option("--event <id>", "an event");
}

function toPosition<Word extends string>(given: Position, word: Word): Word | { time: string } | { event: string } {
  const { to, time, event } = given;
  if ([to, time, event].filter((each) => each !== undefined).length !== 1 || (to !== undefined && to !== word)) {
    throw invalid(`give one of --to ${word}, --time <time>, --event <id>`);
  }
  if (time !== undefined) return { time };
  return event === undefined ? word : { event };
}

function said(json: unknown, text: string): Answer {
  return { json, text: () => text };
}
