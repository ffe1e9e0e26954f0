// The live stream: named facts, for as long as somebody listens. A connection that breaks is taken up again where it ended.
import { spread, waitAnywhere } from "../core/anywhere.ts";
import { DaybookError } from "../core/daybook-error.ts";
import { eventsOf } from "./read-events.ts";
import { send, type Wire } from "./send.ts";

/** Something that happened: `job.completed` with ids and counters, no content. */
export type Fact = {
  readonly name: string;
  /** Where to go on: give it as `after`. Null for what has no place in the stream. */
  readonly id: string | null;
  readonly data: unknown;
};

export type StreamOptions = {
  /** Only facts whose names fit one of these: `job.*`, `call.failed`, `>`. */
  readonly topics?: readonly string[];
  /** Go on after the fact with this id. */
  readonly after?: string;
  /** Ends it. */
  readonly signal?: AbortSignal;
};

/** Ends by `break`, by the signal, or with an error that trying again does not mend, such as a token that was revoked. */
export async function* streamFacts(wire: Wire, { topics = [], after, signal }: StreamOptions): AsyncGenerator<Fact> {
  const query = new URLSearchParams(topics.map((topic) => ["topics", topic]));
  let last = after;
  let failures = 0;
  for (let pauseMs = wire.backoffMs ?? 250; ;) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last !== undefined) headers["last-event-id"] = last;
      const path = `/api/v1/stream${query.size === 0 ? "" : `?${query.toString()}`}`;
      const { body } = await send(wire, { method: "GET", path, headers }, signal === undefined ? {} : { signal });
      for await (const event of eventsOf(body ?? new ReadableStream())) {
        failures = 0;
        last = event.id ?? last;
        pauseMs = event.retryMs ?? pauseMs;
        yield { name: event.name, id: event.id ?? null, data: readData(event.data) };
      }
    } catch (error) {
      if (signal?.aborted === true) return;
      // What `send` has tried often enough, and what is refused, is for the caller. A body that broke off is neither.
      if (error instanceof DaybookError) throw error;
    }
    if (signal?.aborted === true) return;
    await waitAnywhere(spread(Math.min(pauseMs * 2 ** failures++, pauseMsMax)), signal).catch(() => undefined);
  }
}

const pauseMsMax = 30_000;

function readData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
