// daybook events list and show.
import type { Command } from "commander";
import type { EventFilter } from "../../events/read-event.ts";
import { eventJson, eventTable, eventWords, infoJson } from "../event-words.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { looking, withBook } from "../with-book.ts";

const listExample = `
The status of an event is dead_lettered when a listener gave up on it, acked when all have ended, claimed
while one runs, and pending otherwise.

Example:
  $ daybook events list --book shop.db --topic 'order.>' --since 2026-03-01T00:00:00Z`;

const showExample = `
Example:
  $ daybook events show --book shop.db 0195d6e8-3c1a-7c2e-9d5a-2f1b6a7c8d9e`;

export function listEvents(group: Command): void {
  const list = group.command("list").description("list events with what became of them, the newest first");
  addPageOptions(list)
    .option("--topic <pattern>", "only these: a topic, or a pattern with * and >")
    .option("--since <time>", "only those published from then on, ISO 8601 with a zone")
    .option("--until <time>", "only those published before then")
    .addHelpText("after", listExample)
    .action((filter: PageOptions & Pick<EventFilter, "topic" | "since" | "until">) =>
      withBook(list, looking, async (book) => {
        const { items, next } = await book.events.list(filter);
        return {
          json: { items: items.map(eventJson), next },
          text: async () =>
            items.length === 0 && next === null
              ? "There are no such events."
              : [await eventTable(items), ...nextPage(list, next)].join("\n"),
        };
      }),
    );
}

export function showEvent(group: Command): void {
  group
    .command("show")
    .description("show an event, its deliveries and the chain it belongs to")
    .argument("<id>", "the id of the event")
    .addHelpText("after", showExample)
    .action((id: string, _options: object, command: Command) =>
      withBook(command, looking, async (book) => {
        const event = await book.events.get(id);
        const lineage = await book.events.lineage(id);
        return { json: { ...eventJson(event), root: infoJson(lineage) }, text: () => eventWords(event, lineage) };
      }),
    );
}
