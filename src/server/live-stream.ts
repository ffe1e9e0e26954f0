// GET /stream: what happens to a tenant, as it happens.
import { openFactFeed, type FactFeed, type LiveFact } from "../book/fact-feed.ts";
import { readPosition, type Position } from "../book/fact-position.ts";
import { factTopics } from "../book/fact-sources.ts";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { nearest } from "../core/suggest.ts";
import type { Store } from "../storage/store.ts";
import { frameOf, openEventStream, placeOf } from "./event-stream.ts";
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

  function listen(feed: FactFeed, request: Request, stream: OpenStream, onEnd: () => void): Response {
    const topics = readTopics(new URL(request.url).searchParams);
    const position = readLastId(request.headers.get("last-event-id"));
    let stop: (() => void) | undefined;
    let ended = false;
    const at = (): string | undefined => (stop === undefined ? undefined : feed.position);
    const end = (): void => {
      ended = true;
      stop?.();
      onEnd();
    };
    const events = openEventStream(headersOfAll, end, at);
    stream.signal.addEventListener("abort", () => events.end(frameOf({ event: "closed", data: {} })), { once: true });
    const detail = "more has happened than can be told: read the lists again";
    const following = feed.follow(position, {
      topics,
      hear: (fact) => void events.send(frame(fact)),
      lost: (id) => void events.send(frameOf({ event: "reset", id, data: { detail } })),
      ready: () => events.taken(),
    });
    following.then(
      (left) => {
        stop = left;
        // A reader to whom nothing has happened yet knows where to read on as well.
        if (!ended) events.send(placeOf(at()));
        else end();
      },
      () => {
        events.end(
          frameOf({ event: "error", data: { detail: "the book cannot be read now: come back with Last-Event-ID" } }),
        );
        end();
      },
    );
    return events.response;
  }

  return {
    open(tenant, request, stream) {
      const feed = feeds.get(tenant) ?? openFactFeed(store, tenant);
      feeds.set(tenant, feed);
      const onEnd = (): void => {
        stream.end();
        leave(tenant);
      };
      try {
        return listen(feed, request, stream, onEnd);
      } catch (error) {
        onEnd();
        throw error;
      }
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

function readLastId(given: string | null): Position | undefined {
  if (given === null) return undefined;
  const position = readPosition(given);
  if (position !== undefined) return position;
  throw invalid(`Last-Event-ID is ${quote(given)}: give the id of a fact that this stream has sent, or none`);
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
