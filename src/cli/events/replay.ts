// daybook events replay: says again what was said.
import type { Command } from "commander";
import { invalid } from "../../core/error.ts";
import type { ReplayFilter } from "../../events/replay.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
A replay is a new event, with an id and a root of its own. Give an id, or --topic, --since or --until.

Example:
  $ daybook events replay --book shop.db --topic order.paid --since 2026-03-01T00:00:00Z --dry-run
  $ daybook events replay --book shop.db --topic order.paid --since 2026-03-01T00:00:00Z --listener tell-stock`;

type Options = ReplayFilter & { readonly listener?: string; readonly dryRun?: true };

export function replayEvents(group: Command): void {
  group
    .command("replay")
    .description("publish events again, as new ones")
    .argument("[id]", "the id of one event")
    .option("--topic <pattern>", "those of a topic or a pattern")
    .option("--since <time>", "those published from then on, ISO 8601 with a zone")
    .option("--until <time>", "those published before then")
    .option("--listener <name>", "only this listener hears them (default: all that listen now)")
    .option("--dry-run", "only say how many there are")
    .addHelpText("after", example)
    .action((id: string | undefined, { listener, dryRun, ...filter }: Options, command: Command) => {
      if ((id === undefined) === (Object.keys(filter).length === 0)) {
        throw invalid("give the id of an event, or a filter: --topic, --since, --until");
      }
      return withBook(command, changing, async (book) => {
        const done = await book.events.replay(id ?? filter, {
          ...(listener === undefined ? {} : { listener }),
          ...(dryRun === undefined ? {} : { dryRun }),
        });
        const events = `${done.count} ${done.count === 1 ? "event" : "events"}`;
        return { json: done, text: () => `${events} ${dryRun === true ? "would be" : "were"} published again` };
      });
    });
}
