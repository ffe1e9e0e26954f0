// The text of an answer that comes bit by bit: lines, and the events of server-sent events.
import { waitAnywhere } from "../core/anywhere.ts";

/** An event as it stands in the stream. `retryMs` and `id` hold from then on. */
export type ServerSent = {
  readonly name: string;
  readonly data: string;
  readonly id: string | undefined;
  readonly retryMs: number | undefined;
};

export type Reading = {
  /** How long nothing may come before the connection is taken to be dead. */
  readonly silenceMsMax?: number;
  /** What is cut off at the end is a line too. */
  readonly last?: boolean;
  /** Ends it. */
  readonly signal?: AbortSignal | undefined;
};

/** The lines of a body, ended by \n, \r\n or \r, as soon as they are whole. */
export async function* linesOf(
  body: ReadableStream<Uint8Array>,
  { last = false, signal, silenceMsMax }: Reading = {},
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  // A body from the network ends with its request; one that is made in this process knows nothing of the signal.
  const leave = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", leave, { once: true });
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await heardWithin(silenceMsMax, reader.read());
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A \r at the end may be half of a \r\n.
      const whole = rest.split(/\r\n|\n|\r(?!$)/);
      rest = whole.pop() ?? "";
      yield* whole;
      if (!done) continue;
      if (last && rest !== "") yield rest;
      return;
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    // Whoever stops listening ends the connection.
    await reader.cancel().catch(() => undefined);
  }
}

async function heardWithin<T>(ms: number | undefined, part: Promise<T>): Promise<T> {
  if (ms === undefined) return part;
  const heard = new AbortController();
  const silence = waitAnywhere(ms, heard.signal).then(() => {
    throw new Error(`nothing was heard for ${ms} ms`);
  });
  try {
    return await Promise.race([part, silence]);
  } finally {
    heard.abort();
  }
}

/** A server says something every 15 s. A connection that died with its network or in a sleeping laptop ends by nothing but this. */
const silenceMsMax = 60_000;

/** What has no blank line behind it did not arrive whole, and is not told. */
export async function* eventsOf(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<ServerSent> {
  let [name, data, isGiven] = ["", "", false];
  let id: string | undefined;
  let retryMs: number | undefined;
  for await (const line of linesOf(body, { signal, silenceMsMax })) {
    if (line === "") {
      if (isGiven) yield { name: name === "" ? "message" : name, data: data.slice(0, -1), id, retryMs };
      [name, data, isGiven] = ["", "", false];
      continue;
    }
    const [, field = "", value = ""] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
    if (field === "event") name = value;
    else if (field === "data") [data, isGiven] = [`${data}${value}\n`, true];
    else if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) retryMs = Number(value);
  }
}
