// Listeners and dead letters in words.
import { isoTime } from "../core/time.ts";
import type { ListenerRecord } from "../events/listeners.ts";
import type { DeadLetterRecord } from "../events/read-dead-letter.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showFields, showJson, showTable, timeCell } from "./show.ts";

type Seen = Pick<ListenerRecord, "state" | "paused" | "hosted" | "registeredAt">;

export function listenerJson(listener: Seen): Record<string, unknown> {
  const { paused, registeredAt } = listener;
  return {
    ...listener,
    registeredAt: isoTime(registeredAt),
    paused: paused === null ? null : { ...paused, at: isoTime(paused.at) },
  };
}

export function stateWords({ state, paused, hosted }: Seen): string {
  return [state.replace("_", " "), ...(paused === null ? [] : ["paused"]), ...(hosted ? [] : ["no host"])].join(", ");
}

export function listenerTable(listeners: readonly ListenerRecord[]): Promise<string> {
  return showTable(
    ["listener", "hears", "state", "lag", "oldest", "dead letters"],
    listeners.map((each) => [...hearingCells(each), String(each.deadLetters)]),
  );
}

/** Who hears what, how it is, and how far behind: the same for a listener and for a sink. */
export function hearingCells(each: Seen & Pick<ListenerRecord, "name" | "topics" | "lag">): string[] {
  const { events, seconds } = each.lag;
  const oldest = events === 0 ? "" : `${Math.round(seconds)} s`;
  return [plainCell(each.name), plainCell(each.topics.join(", ")), stateWords(each), String(events), oldest];
}

export function letterJson(letter: DeadLetterRecord): Record<string, unknown> {
  const { firstFailedAt, failedAt, endedAt } = letter;
  return {
    ...letter,
    firstFailedAt: isoTime(firstFailedAt),
    failedAt: isoTime(failedAt),
    endedAt: isoOrNull(endedAt),
  };
}

export function letterTable(letters: readonly DeadLetterRecord[]): Promise<string> {
  return showTable(
    ["id", "listener", "topic", "status", "tries", "error", "failed"],
    letters.map((each) => [
      each.id,
      plainCell(each.listener),
      plainCell(each.topic),
      each.status,
      String(each.attempts),
      plainCell(`${each.error.type}: ${each.error.message}`),
      timeCell(each.failedAt),
    ]),
  );
}

export async function letterWords(letter: DeadLetterRecord): Promise<string> {
  const fields: readonly (readonly [string, string | null])[] = [
    ["dead letter", letter.id],
    ["status", letter.status],
    ["listener", plainCell(letter.listener, 200)],
    ["event", plainCell(letter.eventId, 200)],
    ["topic", plainCell(letter.topic, 500)],
    ["job", letter.jobId],
    ["tries", String(letter.attempts)],
    ["redrives", String(letter.redrives)],
    ["failed", isoTime(letter.failedAt)],
    ["error", plainCell(`${letter.error.type}: ${letter.error.message}`, 2000)],
    ["ended", letter.endedAt === null ? null : isoTime(letter.endedAt)],
    ["reason", letter.reason === null ? null : plainCell(letter.reason, 2000)],
  ];
  const said = fields.filter((field): field is readonly [string, string] => field[1] !== null);
  return `${await showFields(said)}\n\npayload\n${showJson(letter.payload)}`;
}
