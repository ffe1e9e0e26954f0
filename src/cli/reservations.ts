// daybook reservations: which queues are held for direct work, and by whom.
import { styleText } from "node:util";
import type { Command } from "commander";
import { isoTime } from "../core/time.ts";
import type { ReservationRecord } from "../jobs/direct/reservation.ts";
import type { Answer } from "./answer.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showTable, timeCell } from "./show.ts";
import { looking, withBook } from "./with-book.ts";

const groupExample = `
Nothing of a queue that is held starts, until its holder releases it or ends, or ten minutes have
passed without a renewal.

Example:
  $ daybook reservations list --book shop.db`;

const listExample = `
Example:
  $ daybook reservations list --book shop.db --all`;

export function reservations(program: Command): void {
  const group = program
    .command("reservations")
    .description("list reservations: queues that are held for direct work")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  group
    .command("list")
    .description("list the queues that are held, and by which session")
    .option("--all", "also those that were released or have expired; the last 500")
    .addHelpText("after", listExample)
    .action((options: { all?: boolean }, command: Command) =>
      withBook(command, looking, async (book) => toAnswer(await book.reservations.list(options))),
    );
}

function toAnswer(found: readonly ReservationRecord[]): Answer {
  return {
    json: { items: found.map(toJson) },
    text: () => (found.length === 0 ? "There are no such reservations." : table(found)),
  };
}

function toJson(reservation: ReservationRecord): Record<string, unknown> {
  return {
    ...reservation,
    reservedAt: isoTime(reservation.reservedAt),
    expiresAt: isoTime(reservation.expiresAt),
    endedAt: isoOrNull(reservation.endedAt),
  };
}

function table(found: readonly ReservationRecord[]): Promise<string> {
  return showTable(
    ["id", "queue", "status", "session", "reserved", "expires", "note"],
    found.map((each) => [
      each.id,
      plainCell(each.queue, 32),
      styleText(each.status === "active" ? "green" : "dim", each.status, { stream: process.stdout }),
      each.sessionId,
      timeCell(each.reservedAt),
      timeCell(each.endedAt ?? each.expiresAt),
      each.note === null ? "" : plainCell(each.note, 40),
    ]),
  );
}
