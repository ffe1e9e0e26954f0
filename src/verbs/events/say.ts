// events publish, replay and cleanup: what changes the events of a book.
import type { Cleaned } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { duration, flag, json, maybe, text, time, whole } from "../field.ts";
import { headers } from "../headers-field.ts";
import { count } from "../shown.ts";
import { pattern, topic } from "../topic-field.ts";
import { verb } from "../verb.ts";

export const say = {
  publish: verb({
    words: "events publish <topic>",
    http: "POST /events",
    role: "operate",
    about: "publish an event",
    more: `No schema is known here, so the payload is checked when the event is delivered. An id or a dedupe key
that is in the book already publishes nothing.`,
    input: {
      topic: topic("segments between dots: order.paid"),
      payload: maybe(json("what is said, as JSON (default: null)")),
      headers: maybe(
        headers('a text beside the payload, such as "version: 2"; may be given several times', limits.headersMax),
      ),
      key: maybe(text("events of one key are heard in order, by listeners that ask for it", "key")),
      priority: maybe(
        whole("from -1000 to 1000, higher is heard first (default: 100)", -limits.priorityMax, limits.priorityMax),
      ),
      id: maybe(text("an id of your own", "id")),
      dedupeKey: maybe(text("publish nothing while an event of this key counts", "key")),
      dedupeWindow: maybe(duration("how long it counts, such as 1h (default: as long as it is kept)", { min: 1 })),
      at: maybe(time("not delivered before this time, ISO 8601 with a zone")),
      in: maybe(duration("not delivered before this long from now, such as 10m")),
    },
    examples: [
      `events publish order.paid --payload '{"orderId": "o-17"}' --key o-17`,
      "events publish report.due --in 10m --dedupe-key report-2026-03",
    ],
    check({ at, in: delay, dedupeKey, dedupeWindow }) {
      if (at !== undefined && delay !== undefined) throw invalid('give "at" or "in", not both');
      if (dedupeKey === undefined && dedupeWindow !== undefined) throw invalid("a dedupe window needs a dedupe key");
    },
    run: (book, { topic: said, payload, ...options }) => book.events.publish(said, payload ?? null, options),
    show: ({ id, created, deliveries }) =>
      created
        ? `${id} is published to ${count(deliveries, "listener")}`
        : `${id} is in the book already; nothing was published`,
  }),

  replay: verb({
    words: "events replay [id]",
    http: "POST /events/replay",
    role: "operate",
    about: "publish events again, as new ones",
    more: `A replay is a new event, with an id and a root of its own. Give the id of one event, or say which ones
by their topic and time.`,
    input: {
      id: maybe(text("the id of one event", "id")),
      topic: maybe(pattern("those of a topic, or of a pattern with * and >")),
      since: maybe(time("those published from then on, ISO 8601 with a zone")),
      until: maybe(time("those published before then")),
      listener: maybe(text("only this listener hears them (default: all that listen now)", "name")),
      dryRun: maybe(flag("only say how many there are")),
    },
    examples: [
      "events replay --topic order.paid --since 2026-03-01T00:00:00Z --dry-run",
      "events replay --topic order.paid --since 2026-03-01T00:00:00Z --listener tell-stock",
    ],
    check({ id, topic: wanted, since, until }) {
      const isFilter = (wanted ?? since ?? until) !== undefined;
      if ((id !== undefined) === isFilter) {
        throw invalid("give the id of an event, or say which by topic, since and until: one or the other");
      }
    },
    run: (book, { id, listener, dryRun, ...filter }) =>
      book.events.replay(id ?? filter, {
        ...(listener === undefined ? {} : { listener }),
        ...(dryRun === undefined ? {} : { dryRun }),
      }),
    show(done, { dryRun }) {
      const would = done.count === 1 ? "was" : "were";
      return `${count(done.count, "event")} ${dryRun === true ? "would be" : would} published again`;
    },
  }),

  cleanup: verb({
    words: "events cleanup",
    http: "POST /events/cleanup",
    role: "admin",
    destroys: true,
    about: "remove events that are old and finished",
    more: `It says what would leave, and removes it with --apply. What a listener has not finished stays, and is
counted; so does the last event of the book.`,
    input: {
      olderThan: duration("only what was published at least this long ago, such as 90d"),
      apply: maybe(flag("remove them, and do not only say it")),
    },
    examples: ["events cleanup --older-than 90d", "events cleanup --older-than 90d --apply"],
    async run(book, { olderThan, apply = false }): Promise<Cleaned & { dryRun: boolean }> {
      return { dryRun: !apply, ...(await book.events.cleanup({ olderThan, dryRun: !apply })) };
    },
    show({ dryRun, removed, kept }) {
      const stays = [
        [kept.unfinished, "not all of its deliveries have ended", "not all of their deliveries have ended"],
        [kept.deadLettered, "it has a dead letter", "they have dead letters"],
        [kept.unheard, "a listener that catches up has not heard it", "a listener that catches up has not heard them"],
      ] as const;
      const said = `${count(removed, "event")} ${dryRun ? "would be removed" : "removed"}`;
      return [
        dryRun && removed > 0 ? `${said}; remove ${removed === 1 ? "it" : "them"} with --apply` : said,
        ...stays
          .filter(([number]) => number > 0)
          .map(([number, one, many]) => (number === 1 ? `1 stays: ${one}` : `${number} stay: ${many}`)),
      ];
    },
  }),
};
