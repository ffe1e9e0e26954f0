// reservations: which queues are held for direct work, and by which session.
import type { ReservationRecord } from "../index.ts";
import { flag, maybe } from "./field.ts";
import { id, status, table, time, type Part } from "./shown.ts";
import { verb } from "./verb.ts";

export const reservations = {
  list: verb({
    words: "reservations list",
    http: "GET /reservations",
    role: "read",
    about: "list the queues that are held, and by which session",
    input: { all: maybe(flag("also those that were released or have expired; the last 500")) },
    examples: ["reservations list --all"],
    run: async (book, input) => ({ items: await book.reservations.list(input) }),
    show: ({ items }) => reservationTable(items),
  }),
};

function reservationTable(items: readonly ReservationRecord[]): Part {
  const columns = {
    id: (each: ReservationRecord) => id(each.id),
    queue: (each: ReservationRecord) => each.queue,
    status: (each: ReservationRecord) => status(each.status),
    session: (each: ReservationRecord) => id(each.sessionId),
    reserved: (each: ReservationRecord) => time(each.reservedAt),
    expires: (each: ReservationRecord) => time(each.endedAt ?? each.expiresAt),
    note: (each: ReservationRecord) => each.note,
  };
  return table(items, columns, { none: "There are no such reservations.", least: ["session", "reserved"] });
}
