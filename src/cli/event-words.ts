// Dead letters in words.
import { isoTime } from "../core/time.ts";
import type { DeadLetterRecord } from "../events/read-dead-letter.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showFields, showJson, showTable, timeCell } from "./show.ts";

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
