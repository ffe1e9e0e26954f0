// The live stream: named facts, for as long as somebody listens. A connection that breaks is taken up again where it ended.
import { spread, waitAnywhere } from "../core/anywhere.ts";
import { DaybookError } from "../core/daybook-error.ts";
import { eventsOf } from "./read-events.ts";
import { listen, type Wire } from "./send.ts";

/** Something that happened: `job.completed` with ids and counters, no content. `reset` says that facts were missed, because too many have
 *  happened since: read the lists again. */
export type Fact = {
  readonly name: string;
  /** Where to go on: give it as `after`. Null for what has no place in the stream. */
  readonly id: string | null;
  readonly data: unknown;
};

export type StreamOptions = {
  /** Only facts of these names, such as `job.completed`. */
  readonly topics?: readonly string[];
  /** Go on after the fact with this id. */
  readonly after?: string;
  /** Ends it. */
  readonly signal?: AbortSignal;
};

/** Ends by `break`, by the signal, or with an error that trying again does not mend, such as a token that was revoked. */
export async function* streamFacts(wire: Wire, { topics = [], after, signal }: StreamOptions): AsyncGenerator<Fact> {
  const query = new URLSearchParams(topics.map((topic) => ["topic", topic]));
  const path = `/api/v1/stream${query.size === 0 ? "" : `?${query.toString()}`}`;
  let last = after;
  let failures = 0;
  let isHeard = false;
  for (let pauseMs = wire.backoffMs ?? 250; ;) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last !== undefined) headers["last-event-id"] = last;
      const { body } = await listen(wire, { method: "GET", path, headers }, signal === undefined ? {} : { signal });
      isHeard = true;
      for await (const event of eventsOf(body ?? new ReadableStream(), signal)) {
        if (signal?.aborted === true) return;
        pauseMs = event.retryMs ?? pauseMs;
        if (goodbyes.includes(event.name)) break;
        failures = 0;
        last = event.id ?? last;
        yield { name: event.name, id: event.id ?? null, data: readData(event.data) };
      }
    } catch (error) {
      if (signal?.aborted === true) return;
      // A server that was there comes back. What is refused is for the caller, and so is a server that never was there.
      if (error instanceof DaybookError && !(isHeard && passing.includes(error.code))) throw error;
    }
    if (signal?.aborted === true) return;
    await waitAnywhere(spread(Math.min(pauseMs * 2 ** failures++, pauseMsMax)), signal).catch(() => undefined);
  }
}

/** The last event of a connection, which says why it ends. */
const goodbyes: readonly string[] = ["closed", "slow", "error"];

const passing: readonly string[] = ["unavailable", "busy", "closed", "timeout"];

const pauseMsMax = 30_000;

function readData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
