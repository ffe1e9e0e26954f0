// How a person reads schedules, their decisions and their next fires.
import type { DecisionRecord, FirePreview, ScheduleRecord } from "../../index.ts";
import { formatDuration } from "../../core/duration.ts";
import { asJson, copied, fields, section, table, when, words, type Cell, type Part } from "../shown.ts";

export const scheduleTable = {
  columns: {
    name: (each: ScheduleRecord) => copied(each.name),
    when: (each: ScheduleRecord) => each.words,
    fires: (each: ScheduleRecord) => `${each.target.kind} ${each.target.name}`,
    next: (each: ScheduleRecord) => when(each.nextAt),
    "last fired": (each: ScheduleRecord) => when(each.lastFiredAt),
    note: noteOf,
  },
  least: ["last fired", "note"],
};

/** Why it has no next time. */
function noteOf({ paused, held, nextAt }: ScheduleRecord): string | null {
  if (paused !== null) return paused.note === null ? "paused" : `paused: ${paused.note}`;
  if (held) return "held: this book is a copy";
  return nextAt === null ? "over" : null;
}

/** Everything about one schedule. */
export function schedulePage(schedule: ScheduleRecord): Part[] {
  const { target, paused, jitterMs, maxFires, pauseAfterFailures } = schedule;
  const facts = fields({
    schedule: schedule.name,
    when: schedule.words,
    [schedule.kind]: schedule.expression,
    zone: `${schedule.zone}, gap ${schedule.gap}, ambiguous ${schedule.ambiguous}`,
    [target.kind]: target.name,
    "made by": schedule.source === "code" ? "code" : "hand",
    missed: missedOf(schedule),
    overlap: target.kind === "event" ? null : schedule.overlap,
    jitter: jitterMs === 0 ? null : `up to ${formatDuration(jitterMs)}`,
    start: when(schedule.startsAt),
    end: when(schedule.endsAt),
    fires: maxFires === null ? schedule.fires : `${schedule.fires} of ${maxFires}`,
    failures: pauseAfterFailures === null ? null : `${schedule.failures} in a row, pauses after ${pauseAfterFailures}`,
    next: schedule.nextAt === null ? "none" : when(schedule.nextAt),
    "last fired": when(schedule.lastFiredAt),
    held: schedule.held ? "this book is a copy" : null,
    paused: when(paused?.at ?? null),
    note: paused?.note ?? null,
    created: when(schedule.createdAt),
    updated: when(schedule.updatedAt),
  });
  return [facts, section(target.kind === "event" ? "payload" : "params", asJson(schedule.params))];
}

function missedOf({ missed, maxLatenessMs }: ScheduleRecord): string {
  return maxLatenessMs === null ? missed : `${missed}, at most ${formatDuration(maxLatenessMs)} late`;
}

export const decisionTable = {
  columns: {
    slot: slotOf,
    slots: (each: DecisionRecord) => each.slots,
    decision: (each: DecisionRecord) => each.kind,
    "job or event": (each: DecisionRecord) => copied(each.jobId ?? each.eventId),
    note: (each: DecisionRecord) => each.note,
  },
  least: ["slots", "note"],
  none: "No slot has been decided, or none before that cursor.",
};

function slotOf({ at, untilAt, slots }: DecisionRecord): Cell {
  return slots === 1 ? when(at) : words(when(at), "to", when(untilAt));
}

const marks = { gap: "clock goes forward: moved", ambiguous: "clock goes back: this time comes twice" } as const;

/** `here`: the zone of one more clock. */
export function fireTable(fires: readonly FirePreview[], here: string | undefined): Part {
  const columns = {
    fires: (each: FirePreview) => when(each.fireAt),
    "on its own clock": (each: FirePreview) => each.local,
    ...(here === undefined ? {} : { [here]: (each: FirePreview) => each.there }),
    mark: ({ dst }: FirePreview) => (dst === null ? null : `${dst} (${marks[dst]})`),
  };
  return table(fires, columns, { none: "It does not fire any more.", least: ["mark"] });
}
