// events list, tail and show: what was said, and who heard it.
import type { Book, DeliveryRecord, EventRecord, EventTree } from "../../index.ts";
import { systemClock } from "../../core/clock.ts";
import { matchesTopic } from "../../events/topic.ts";
import { paged } from "../cursor.ts";
import { id, maybe, page, time, whole } from "../field.ts";
import { fields, id as copied, json, lines, row, section, status, table, time as moment, type Part } from "../shown.ts";
import { pattern } from "../topic-field.ts";
import { verb } from "../verb.ts";

const which = maybe(pattern("only these: a topic, or a pattern with * and >"));

export const look = {
  list: verb({
    words: "events list",
    http: "GET /events",
    role: "read",
    about: "list events with what became of them, newest first",
    more: `The status of an event is dead_lettered when a listener gave up on it, acked when all have ended, claimed
while one runs, unheard when nobody listened, and pending otherwise. A page of a pattern may have fewer events than its limit although
there are more.`,
    input: {
      topic: which,
      since: maybe(time("only those published from then on, ISO 8601 with a zone")),
      until: maybe(time("only those published before then")),
      ...page,
    },
    examples: ["events list --topic 'order.>' --since 2026-03-01T00:00:00Z"],
    run: (book, input) => paged(book, "events", input, (filter) => book.events.list(filter)),
    show: ({ items }) =>
      table(items, eventColumns, { none: "There are no such events on this page.", least: ["published"] }),
  }),

  tail: verb({
    words: "events tail",
    http: "GET /event-stream",
    role: "read",
    stream: true,
    about: "follow events as they are published",
    more: "It ends by Ctrl-C, or after --count events. With --json each event is one line.",
    input: { topic: which, count: maybe(whole("end after so many", 1)) },
    examples: ["events tail --topic 'order.*'"],
    run: (book, input, { signal }) => follow(book, signal, input),
    show: ({ publishedAt, topic, payload }) => row(moment(publishedAt), topic, JSON.stringify(payload)),
  }),

  show: verb({
    words: "events show <id>",
    http: "GET /events/{id}",
    role: "read",
    about: "show an event, its deliveries and the chain it belongs to",
    input: { id: id("event") },
    examples: ["events show 0195d6e8-3c1a-7c2e-9d5a-2f1b6a7c8d9e"],
    async run(book, { id: wanted }): Promise<EventRecord & { root: EventTree }> {
      return { ...(await book.events.get(wanted)), root: await book.events.lineage(wanted) };
    },
    show: ({ root, ...event }) => eventPage(event, root),
  }),
};

const eventColumns = {
  id: (event: EventRecord) => copied(event.id),
  topic: (event: EventRecord) => event.topic,
  status: (event: EventRecord) => status(event.status),
  listeners: (event: EventRecord) => event.deliveries.map((each) => `${each.listener}: ${each.status}`).join(", "),
  published: (event: EventRecord) => moment(event.publishedAt),
};

function eventPage(event: EventRecord, tree: EventTree): Part[] {
  const facts = fields({
    event: copied(event.id),
    topic: event.topic,
    status: status(event.status),
    priority: event.priority,
    key: event.key,
    published: moment(event.publishedAt),
    "not before": event.availableAt === event.publishedAt ? null : moment(event.availableAt),
    depth: event.chainDepth === 0 ? null : event.chainDepth,
    "published by run": copied(event.causeRunId),
    "replay of": copied(event.replayOf),
    headers: Object.keys(event.headers).length === 0 ? null : JSON.stringify(event.headers),
  });
  const heard = table(event.deliveries, deliveryColumns, { none: "No listener was told of it.", least: ["job"] });
  return [
    facts,
    section("payload", json(event.payload)),
    section("deliveries", heard),
    ...(tree.caused.length === 0 ? [] : [section("chain", lines(treeLines(tree, event.id).join("\n")))]),
  ];
}

const deliveryColumns = {
  listener: (each: DeliveryRecord) => each.listener,
  status: (each: DeliveryRecord) => status(each.status, each.waitsFor === null ? "" : ` (${each.waitsFor})`),
  tries: (each: DeliveryRecord) => each.attempts,
  job: (each: DeliveryRecord) => copied(each.jobId),
  error: ({ error }: DeliveryRecord) => (error === null ? null : `${error.type}: ${error.message}`),
};

function treeLines(tree: EventTree, here: string, indent = ""): string[] {
  const mark = tree.id === here ? "  ← this one" : "";
  // An id of the user's own may hold a line break, and must not end a line here.
  const line = `${tree.topic}  ${tree.id}`.replaceAll(/\s*[\n\r]\s*/g, " ");
  return [`${indent}${line}${mark}`, ...tree.caused.flatMap((each) => treeLines(each, here, `${indent}  `))];
}

const lookEveryMs = 300;
const pageSize = 200;

// An event that was told is remembered by its id, as long as it could still stand on the pages that are looked at.
const knownMax = 10_000;

// Known events are told by their ids and not by a number: on PostgreSQL one that began earlier may be committed later.
async function* follow(
  book: Book,
  signal: AbortSignal,
  { topic, count }: { readonly topic?: string; readonly count?: number },
): AsyncGenerator<EventRecord> {
  const most = count ?? Number.POSITIVE_INFINITY;
  const known = new Set((await book.events.list({ limit: pageSize })).items.map((event) => event.id));
  for (let told = 0; !signal.aborted;) {
    for (const event of await newSince(book, known)) {
      if (known.has(event.id)) continue;
      known.add(event.id);
      if (topic !== undefined && !matchesTopic(topic, event.topic)) continue;
      yield event;
      told++;
      if (told >= most) return;
    }
    await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
  }
}

/** The oldest first. A burst may be longer than a page: then the pages before it are read too. */
async function newSince(book: Book, known: Set<string>): Promise<EventRecord[]> {
  const found: EventRecord[] = [];
  for (let after: string | null | undefined; after !== null && found.length < knownMax;) {
    const { items, next } = await book.events.list({ limit: pageSize, ...(after === undefined ? {} : { after }) });
    found.push(...items.filter((event) => !known.has(event.id)));
    after = items.some((event) => known.has(event.id)) ? null : next;
  }
  for (const oldest of known) {
    if (known.size <= knownMax) break;
    known.delete(oldest);
  }
  return found.toReversed();
}
