// daybook events tail: prints events as they are published, until it is told to stop.
import type { Command } from "commander";
import type { Book } from "../../book.ts";
import { systemClock } from "../../core/clock.ts";
import { isoTime } from "../../core/time.ts";
import type { EventRecord } from "../../events/read-event.ts";
import { checkPattern, matchesTopic } from "../../events/topic.ts";
import { eventJson } from "../event-words.ts";
import { plainCell } from "../show.ts";
import { wholeNumber } from "../whole-number.ts";
import { looking, withBook } from "../with-book.ts";

const example = `
Ends by Ctrl-C, or after --count events. With --json each event is one line.

Example:
  $ daybook events tail --book shop.db --topic 'order.*'`;

const lookEveryMs = 300;
const pageSize = 200;

// What was told is remembered by its id, as long as it could still stand on the pages that are looked at.
const knownMax = 10_000;

type Options = { readonly topic?: string; readonly count?: number };

export function tailEvents(group: Command): void {
  group
    .command("tail")
    .description("follow events as they are published")
    .option("--topic <pattern>", "only these: a topic, or a pattern with * and >")
    .option("--count <n>", "end after so many", wholeNumber("--count"))
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
  const most = count ?? Number.POSITIVE_INFINITY;
  if (topic !== undefined) checkPattern(topic);
  const known = new Set((await book.events.list({ limit: pageSize })).items.map(({ id }) => id));
  let told = 0;
  while (!signal.aborted && told < most) {
    for (const event of await newSince(book, known)) {
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

/** The oldest first. A burst may be longer than a page: then the pages before it are read too. */
async function newSince(book: Book, known: Set<string>): Promise<EventRecord[]> {
  const found: EventRecord[] = [];
  for (let after: string | null | undefined; after !== null && found.length < knownMax;) {
    const page = await book.events.list({ limit: pageSize, ...(after === undefined ? {} : { after }) });
    found.push(...page.items.filter(({ id }) => !known.has(id)));
    after = page.items.some(({ id }) => known.has(id)) ? null : page.next;
  }
  for (const id of known) {
    if (known.size <= knownMax) break;
    known.delete(id);
  }
  return found.toReversed();
}

function print(event: EventRecord, json: boolean): void {
  const line = json
    ? JSON.stringify(eventJson(event))
    : `${isoTime(event.publishedAt)}  ${plainCell(event.topic)}  ${plainCell(JSON.stringify(event.payload), 100)}`;
  process.stdout.write(`${line}\n`);
}
