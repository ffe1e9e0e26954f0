// Answers that come bit by bit: the items of a verb that streams, and lines.
import { DaybookError } from "../core/daybook-error.ts";
import { readAnswer } from "./answer.ts";
import { problemIn } from "./problem.ts";
import { eventsOf, linesOf } from "./read-events.ts";
import { listen, type Asked, type CallOptions, type Wire } from "./send.ts";

/** Ends when the verb has ended; what breaks off before is an error. */
export async function* streamItems(
  wire: Wire,
  verb: string,
  asked: Asked,
  options: CallOptions,
): AsyncGenerator<unknown> {
  const { body } = await listen(wire, { ...asked, headers: { accept: "text/event-stream" } }, options);
  for await (const { name, data } of whole(verb, options, body === null ? [] : eventsOf(body, options.signal))) {
    if (name === "item") yield readAnswer(verb, JSON.parse(data));
    else if (name === "end") return;
    else if (name === "error") throw problemIn(data, `${verb} has failed`);
  }
  if (options.signal?.aborted !== true) throw new DaybookError("unavailable", `${verb} broke off`);
}

export async function* streamLines(
  wire: Wire,
  verb: string,
  asked: Asked,
  options: CallOptions,
): AsyncGenerator<string> {
  const { body } = await listen(wire, asked, options);
  yield* whole(verb, options, body === null ? [] : linesOf(body, { last: true, signal: options.signal }));
}

async function* whole<T>(
  verb: string,
  { signal }: CallOptions,
  source: AsyncIterable<T> | Iterable<T>,
): AsyncGenerator<T> {
  try {
    yield* source;
  } catch (cause) {
    if (signal?.aborted === true) return;
    throw new DaybookError("unavailable", `${verb} broke off: ${String(cause)}`, { cause });
  }
}
