// daybook events: what was said, who heard it, and saying it again.
import type { Command } from "commander";
import { cleanEvents } from "./events/clean.ts";
import { listEvents, showEvent } from "./events/look.ts";
import { publishEvent } from "./events/publish.ts";
import { replayEvents } from "./events/replay.ts";
import { tailEvents } from "./events/tail.ts";

const groupExample = `
An event is heard by every durable listener whose patterns match its topic (docs/events.md).

Example:
  $ daybook events publish --book shop.db order.paid --payload '{"orderId":"o-17"}' --key o-17
  $ daybook events list --book shop.db --topic 'order.*'`;

export function events(program: Command): void {
  const group = program
    .command("events")
    .description("publish, list, follow, replay and clean up events")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  for (const add of [publishEvent, listEvents, tailEvents, showEvent, replayEvents, cleanEvents]) add(group);
}
