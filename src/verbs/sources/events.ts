// events: what was said, who heard it, and saying it again.
import type { Book, EventRecord, EventTree, Published } from "../../index.ts";
import { systemClock } from "../../core/clock.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { matchesTopic } from "../../events/topic.ts";
import { paged } from "../list.ts";
import { duration, flag, id, json, maybe, text, time, whole } from "../field.ts";
import { checkDue, due, headers, pattern, priority, rehearsing, topic } from "../shared-fields.ts";
import { asJson, copied, count, fields, lines, row, section, state, table, when, type Part } from "../shown.ts";
import { operate, read } from "../verb.ts";

const which = maybe(pattern("only these: a topic, or a pattern with * and >"));

const published = {
  since: maybe(time("only those published from then on, ISO 8601 with a zone")),
  until: maybe(time("only those published before then")),
};

export const events = {
  list: paged({
    words: "events list",
    about: "list events with what became of them, newest first",
    more: `The status of an event is dead_lettered when a listener gave up on it, acked when all have ended, claimed
while one runs, unheard when nobody listened, and pending otherwise. A page of a pattern may have fewer events than its limit although
there are more.`,
    input: {
      topic: which,
      ...published,
    },
    examples: ["events list --topic 'order.>' --since 2026-03-01T00:00:00Z"],
    find: (book, filter) => book.events.list(filter),
    columns: {
      id: (event) => copied(event.id),
      topic: (event) => event.topic,
      status: (event) => state(event.status),
      listeners: (event) => event.deliveries.map((each) => `${each.listener}: ${each.status}`).join(", "),
      published: (event) => when(event.publishedAt),
    },
    none: "There are no such events on this page.",
    least: ["published"],
  }),

  tail: read({
    words: "events tail",
    http: "GET /event-stream",
    stream: true,
    about: "follow events as they are published",
    more: "It ends by Ctrl-C, or after --count events. With --json each event is one line.",
    input: { topic: which, count: maybe(whole("end after so many", 1)) },
    examples: ["events tail --topic 'order.*'"],
    run: (book, input, { signal }) => follow(book, signal, input),
    show: ({ publishedAt, topic, payload }) => row(when(publishedAt), topic, JSON.stringify(payload)),
  }),

  show: read({
    words: "events show <id>",
    about: "show an event, its deliveries and the chain it belongs to",
    input: { id: id("event") },
    async run(book, { id: wanted }): Promise<EventRecord & { root: EventTree }> {
      return { ...(await book.events.get(wanted)), root: await book.events.lineage(wanted) };
    },
    show: ({ root, ...event }) => eventPage(event, root),
  }),

  publish: operate({
    words: "events publish <topic>",
    http: "POST /events",
    about: "publish an event",
    more: `No schema is known here, so the payload is checked when the event is delivered. An id or a dedupe key
that is in the book already publishes nothing. It says how many durable listeners it is delivered to, and how many live
listeners of apps that run hear its topic; live listeners of no app are known to their own process alone.`,
    input: {
      topic: topic("segments between dots: order.paid"),
      payload: maybe(json("what is said, as JSON (default: null)")),
      headers: maybe(
        headers('a text beside the payload, such as "version: 2"; may be given several times', limits.headersMax),
      ),
      key: maybe(text("events of one key are heard in order, by listeners that ask for it", "key")),
      priority: maybe(priority("higher is heard first (default: 100)")),
      id: maybe(text("an id of your own", "id")),
      dedupeKey: maybe(text("publish nothing while an event of this key counts", "key")),
      dedupeWindow: maybe(duration("how long it counts, such as 1h (default: as long as it is kept)", { min: 1 })),
      ...due,
    },
    examples: [
      `events publish order.paid --payload '{"orderId": "o-17"}' --key o-17`,
      "events publish report.due --in 10m --dedupe-key report-2026-03",
    ],
    check({ dedupeKey, dedupeWindow, ...rest }) {
      checkDue(rest);
      if (dedupeKey === undefined && dedupeWindow !== undefined) throw invalid("a dedupe window needs a dedupe key");
    },
    async run(book, { topic: said, payload, ...options }): Promise<Published & { live: number }> {
      const published = await book.events.publish(said, payload ?? null, options);
      return { ...published, live: published.created ? await countLive(book, said) : 0 };
    },
    show: ({ id, created, deliveries, live }) =>
      created
        ? `${id} is published to ${count(deliveries, "durable listener")}${live === 0 ? "" : `; ${heardLive(live)}`}`
        : `${id} is in the book already; nothing was published`,
  }),

  replay: operate({
    words: "events replay [id]",
    about: "publish events again, as new ones",
    more: `A replay is a new event, with an id and a root of its own. Give the id of one event, or say which ones
by their topic and time; of those, replays are left out. At most 10,000 are published at a time.`,
    input: {
      id: maybe(text("the id of one event", "id")),
      topic: which,
      ...published,
      replays: maybe(flag("also those that are replays themselves")),
      listener: maybe(text("only this listener hears them (default: all that listen now)", "name")),
      ...rehearsing,
    },
    examples: [
      "events replay --topic order.paid --since 2026-03-01T00:00:00Z --dry-run",
      "events replay --topic order.paid --since 2026-03-01T00:00:00Z --listener tell-stock",
    ],
    check({ id, topic: wanted, since, until, replays }) {
      const isFilter = (wanted ?? since ?? until) !== undefined;
      if ((id !== undefined) === isFilter || (id !== undefined && replays === true)) {
        throw invalid("give the id of an event, or say which by topic, since and until: one or the other");
      }
    },
    run: (book, { id, listener, dryRun = false, ...filter }) =>
      book.events.replay(id ?? filter, { dryRun, ...(listener === undefined ? {} : { listener }) }),
    show(done, { dryRun }) {
      const would = done.count === 1 ? "was" : "were";
      return `${count(done.count, "event")} ${dryRun === true ? "would be" : would} published again`;
    },
  }),
};

function eventPage(event: EventRecord, tree: EventTree): Part[] {
  const facts = fields({
    event: copied(event.id),
    topic: event.topic,
    status: state(event.status),
    priority: event.priority,
    key: event.key,
    published: when(event.publishedAt),
    "not before": event.availableAt === event.publishedAt ? null : when(event.availableAt),
    depth: event.chainDepth === 0 ? null : event.chainDepth,
    "published by run": copied(event.causeRunId),
    "replay of": copied(event.replayOf),
    headers: Object.keys(event.headers).length === 0 ? null : JSON.stringify(event.headers),
  });
  const heard = table(
    event.deliveries,
    {
      listener: (each) => copied(each.listener),
      status: (each) => state(each.status, each.waitsFor === null ? "" : ` (${each.waitsFor})`),
      tries: (each) => each.attempts,
      job: (each) => copied(each.jobId),
      error: ({ error }) => (error === null ? null : `${error.type}: ${error.message}`),
    },
    { none: "No listener was told of it.", least: ["job"] },
  );
  return [
    facts,
    section("payload", asJson(event.payload)),
    section("deliveries", heard),
    ...(tree.caused.length === 0 ? [] : [section("chain", lines(treeLines(tree, event.id).join("\n")))]),
  ];
}

function treeLines(tree: EventTree, here: string, indent = ""): string[] {
  const mark = tree.id === here ? "  ← this one" : "";
  // An id of the user's own may hold a line break, and must not end a line here.
  const line = `${tree.topic}  ${tree.id}`.replaceAll(/\s*[\n\r]\s*/g, " ");
  return [`${indent}${line}${mark}`, ...tree.caused.flatMap((each) => treeLines(each, here, `${indent}  `))];
}

/** How many live listeners of apps that run hear the topic; what they ask of an event decides whether they act on it. */
async function countLive(book: Book, said: string): Promise<number> {
  const all = await book.apps.listeners();
  return all.filter(({ topics }) => topics.some((pattern) => matchesTopic(pattern, said))).length;
}

function heardLive(live: number): string {
  return `${count(live, "live listener")} of apps ${live === 1 ? "hears" : "hear"} it`;
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
