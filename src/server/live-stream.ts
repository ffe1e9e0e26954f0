// GET /stream: what happens to a tenant, as it happens.
import { openFactFeed, readPosition, type FactFeed, type LiveFact } from "../book/fact-feed.ts";
import { factTopics } from "../book/fact-sources.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { nearest } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import { frameOf, openEventStream } from "./event-stream.ts";
import { headersOfAll } from "./guard.ts";
import type { OpenStream } from "./open-streams.ts";

export type LiveStreams = { open(tenant: string, request: Request, stream: OpenStream): Response; close(): void };

export function openLiveStreams(store: Store): LiveStreams {
  const feeds = new Map<string, FactFeed>();
  const frame = frameMaker();

  function leave(tenant: string): void {
    const feed = feeds.get(tenant);
    if (feed === undefined || feed.readers > 0) return;
    feed.close();
    feeds.delete(tenant);
  }

  return {
    open(tenant, request, stream) {
      const topics = readTopics(new URL(request.url).searchParams);
      const position = request.headers.get("last-event-id") ?? undefined;
      if (position !== undefined && readPosition(position) === undefined) {
        throw invalid(`Last-Event-ID is ${quote(position)}: give the id of a fact that this stream has sent, or none`);
      }
      let forget: (() => void) | undefined;
      let ended = false;
      const feed = feeds.get(tenant) ?? openFactFeed(store, tenant);
      feeds.set(tenant, feed);
      const events = openEventStream(headersOfAll, () => {
        ended = true;
        stream.end();
        forget?.();
        forget = undefined;
        leave(tenant);
      });
      stream.signal.addEventListener("abort", () => events.end(frameOf({ event: "closed", data: {} })), { once: true });
      const following = feed.follow(position, {
        hear: (fact) => {
          if (topics.has(fact.topic)) events.send(frame(fact));
        },
        lost: (id) =>
          void events.send(
            frameOf({ event: "reset", id, data: { detail: "too much has happened since: read the lists again" } }),
          ),
      });
      following.then(
        (stop) => {
          forget = stop;
          if (!ended) return;
          stop();
          leave(tenant);
        },
        () =>
          events.end(
            frameOf({ event: "error", data: { detail: "the book cannot be read now: come back with Last-Event-ID" } }),
          ),
      );
      return events.response;
    },
    close() {
      for (const feed of feeds.values()) feed.close();
      feeds.clear();
    },
  };
}

/** Many readers hear the same fact one after the other, so its text is made once. */
function frameMaker(): (fact: LiveFact) => string {
  let last: LiveFact | undefined;
  let text = "";
  return (fact) => {
    if (fact !== last) text = frameOf({ event: fact.topic, id: fact.position, data: fact.data });
    last = fact;
    return text;
  };
}

function readTopics(query: URLSearchParams): ReadonlySet<string> {
  for (const name of query.keys())
    if (name !== "topic") throw invalid(`the stream does not know ${quote(name)}: it takes topic`);
  const named = query.getAll("topic").flatMap((each) => each.split(","));
  for (const each of named) {
    if (factTopics.includes(each)) continue;
    const near = nearest(each, factTopics);
    const advice = near === undefined ? `give one of ${factTopics.join(", ")}` : `did you mean ${quote(near)}?`;
    throw invalid(`topic is ${quote(each)}: ${advice}`);
  }
  return new Set(named.length === 0 ? factTopics : named);
}
