// daybook events tail: prints events as they are published, until it is told to stop.
import type { Command } from "commander";
import type { Book } from "../../book.ts";
import { systemClock } from "../../core/clock.ts";
import { isoTime } from "../../core/time.ts";
import type { EventRecord } from "../../events/read-event.ts";
import { matchesTopic } from "../../events/topic.ts";
import { eventJson } from "../event-words.ts";
import { plainCell } from "../show.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Ends by Ctrl-C, or after --count events. With --json each event is one line.

Example:
  $ daybook events tail --book shop.db --topic 'order.*'`;

const lookEveryMs = 300;
const pageSize = 200;

type Options = { readonly topic?: string; readonly count?: string };

export function tailEvents(group: Command): void {
  group
    .command("tail")
    .description("follow events as they are published")
    .option("--topic <pattern>", "only these: a topic, or a pattern with * and >")
    .option("--count <n>", "end after so many")
    .addHelpText("after", example)
    .action((options: Options, command: Command) =>
      withBook(command, looking, async (book, signal) => {
        const { json } = command.optsWithGlobals<{ json?: boolean }>();
        const seen = await follow(book, signal, options, (event) => print(event, json === true));
        return { json: { events: seen }, text: () => `${seen} events` };
      }),
    );
}

// Known ones are told by their ids and not by a number: on PostgreSQL one that began earlier may be committed later.
async function follow(
  book: Book,
  signal: AbortSignal,
  { topic, count }: Options,
  tell: (event: EventRecord) => void,
): Promise<number> {
  const most = count === undefined ? Number.POSITIVE_INFINITY : Number(count);
  const known = new Set((await book.events.list({ limit: pageSize })).items.map(({ id }) => id));
  let told = 0;
  while (!signal.aborted && told < most) {
    const { items } = await book.events.list({ limit: pageSize });
    for (const event of items.toReversed()) {
      if (known.has(event.id) || told >= most) continue;
      known.add(event.id);
      if (topic !== undefined && !matchesTopic(topic, event.topic)) continue;
      tell(event);
      told++;
    }
    if (told < most) await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
  return told;
}

function print(event: EventRecord, json: boolean): void {
  const line = json
    ? JSON.stringify(eventJson(event))
    : `${isoTime(event.publishedAt)}  ${plainCell(event.topic)}  ${plainCell(JSON.stringify(event.payload), 100)}`;
  process.stdout.write(`${line}\n`);
}
