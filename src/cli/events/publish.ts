// daybook events publish: says something to whoever listens.
import type { Command } from "commander";
import type { PublishOptions } from "../../events/prepare.ts";
import { readParams } from "../read-params.ts";
import { wholeNumber } from "../whole-number.ts";
import { changing, withBook } from "../with-book.ts";

const example = `
The payload is JSON: as text, @file, or - for standard input. No schema is known here, so it is checked
when it is delivered. An --id or a --dedupe-key that is in the book already publishes nothing.

Example:
  $ daybook events publish --book shop.db order.paid --payload '{"orderId":"o-17"}' --key o-17
  $ daybook events publish --book shop.db report.due --in 10m --dedupe-key report-2026-03`;

type Options = Pick<PublishOptions, "id" | "priority" | "key" | "dedupeKey" | "dedupeWindow" | "at" | "in"> & {
  readonly payload?: string;
};

export function publishEvent(group: Command): void {
  group
    .command("publish")
    .description("publish an event")
    .argument("<topic>", "segments between dots: order.paid")
    .option("--payload <json>", "what is said; default null")
    .option("--key <key>", "events of one key are heard in order, by listeners that ask for it")
    .option("--priority <n>", "from 0 to 1000 (default: 100)", wholeNumber("--priority"))
    .option("--id <id>", "an id of your own")
    .option("--dedupe-key <key>", "nothing is published while an event of this key counts")
    .option("--dedupe-window <duration>", "how long that is: 1h (default: as long as the event is kept)")
    .option("--at <time>", "not delivered before, ISO 8601 with a zone")
    .option("--in <duration>", "not delivered before: 10m")
    .addHelpText("after", example)
    .action(async (topic: string, { payload, ...options }: Options, command: Command) => {
      const said = payload === undefined ? null : await readParams(payload);
      await withBook(command, changing, async (book) => {
        const published = await book.events.publish(topic, said, options);
        const { id, created, deliveries } = published;
        const heard = `${deliveries} ${deliveries === 1 ? "listener" : "listeners"}`;
        return {
          json: published,
          text: () =>
            created ? `${id} is published to ${heard}` : `${id} is in the book already; nothing was published`,
        };
      });
    });
}
