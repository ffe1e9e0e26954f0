// Server-sent events: text that is written as it comes. A reader that is slower than what it reads is let go, not waited for.
import { systemClock, type Timer } from "../core/clock.ts";

export type Sent = { readonly event?: string; readonly id?: string; readonly data: unknown };

export function frameOf({ event, id, data }: Sent): string {
  // JSON has no line breaks in it, so one line of data is enough.
  return `${event === undefined ? "" : `event: ${event}\n`}${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** Where to read on. It is no event: a reader keeps the id alone. */
export function placeOf(id: string | undefined): string {
  return id === undefined ? "" : `id: ${id}\n\n`;
}

/** A comment that keeps proxies from closing a silent stream, and shows who has gone. */
const heartbeat = ": \n\n";
export const heartbeatMs = 15_000;

/** What waits for one reader: more than this, and it is too slow. */
const waitingBytesMax = 262_144;

export type EventStream = {
  readonly response: Response;
  /** False when the reader was too slow, or has left: it is no longer told. */
  send(frame: string): boolean;
  /** Resolves once the reader has taken most of what it was sent: false when it has left. Who sends what is in store waits for it. */
  taken(): Promise<boolean>;
  end(frame?: string): void;
};

/** `onEnd` is called once, whoever ends it. A heartbeat says the id that `at` gives, so that a reader to whom nothing happens still
 *  knows where to read on. */
export function openEventStream(
  headers: Readonly<Record<string, string>>,
  onEnd: () => void,
  at: () => string | undefined = () => undefined,
): EventStream {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let ended = false;
  let pulled: (() => void) | undefined;
  const finish = (): void => {
    if (ended) return;
    ended = true;
    beat.cancel();
    pulled?.();
    onEnd();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start: (made) => void (controller = made),
      pull: () => pulled?.(),
      cancel: finish,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: waitingBytesMax }),
  );
  // What is said at once is written at once: a write for each fact and reader would cost more than making the facts.
  let waiting = "";
  const flush = (): void => {
    if (waiting !== "" && !ended) controller?.enqueue(utf8.encode(waiting));
    waiting = "";
  };
  const end = (frame = ""): void => {
    if (ended) return;
    waiting += frame;
    flush();
    finish();
    controller?.close();
  };
  const send = (frame: string): boolean => {
    if (ended) return false;
    if ((controller?.desiredSize ?? 0) <= waiting.length) {
      end(frameOf({ event: "slow", data: { detail: "read on with Last-Event-ID: what was not read is still there" } }));
      return false;
    }
    if (waiting === "") queueMicrotask(flush);
    waiting += frame;
    return true;
  };
  let beat: Timer = { cancel: () => undefined };
  const beatLater = (): void => {
    beat = systemClock.after(heartbeatMs, () => void (send(`${heartbeat}${placeOf(at())}`) && beatLater()));
  };
  beatLater();
  // Something at once, so that the reader knows that it is heard.
  send(": daybook\n\n");
  return {
    response: new Response(body, {
      headers: {
        ...headers,
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
      },
    }),
    send,
    async taken() {
      flush();
      while (!ended && (controller?.desiredSize ?? 0) < waitingBytesMax / 2) {
        await new Promise<void>((resolve) => (pulled = resolve));
      }
      return !ended;
    },
    end,
  };
}

const utf8 = new TextEncoder();
