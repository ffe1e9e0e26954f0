// A schedule, its decisions and its next fires in words.
import { formatDuration } from "../core/duration.ts";
import { isoTime } from "../core/time.ts";
import type { FirePreview } from "../schedules/schedules.ts";
import type { DecisionRecord, ScheduleRecord } from "../schedules/read-schedule.ts";
import { isoOrNull } from "./job-words.ts";
import { plainCell, showFields, showJson, showTable, showTime, timeCell } from "./show.ts";

export function scheduleJson(schedule: ScheduleRecord): Record<string, unknown> {
  const { paused } = schedule;
  return {
    ...schedule,
    start: isoOrNull(schedule.start),
    end: isoOrNull(schedule.end),
    nextAt: isoOrNull(schedule.nextAt),
    lastFiredAt: isoOrNull(schedule.lastFiredAt),
    paused: paused === null ? null : { ...paused, at: isoTime(paused.at) },
    createdAt: isoTime(schedule.createdAt),
    updatedAt: isoTime(schedule.updatedAt),
  };
}

export function decisionJson(decision: DecisionRecord): Record<string, unknown> {
  const { at, until, decidedAt } = decision;
  return { ...decision, at: isoTime(at), until: isoTime(until), decidedAt: isoTime(decidedAt) };
}

/** Everything about one schedule. */
export async function scheduleWords(schedule: ScheduleRecord): Promise<string> {
  const { paused, maxFires, start, end } = schedule;
  const fields: readonly (readonly [string, string | null])[] = [
    ["schedule", plainCell(schedule.name, 200)],
    ["when", plainCell(schedule.words, 200)],
    [schedule.kind, plainCell(schedule.expression, 200)],
    ["zone", `${schedule.zone}, gap ${schedule.gap}, overlap ${schedule.overlap}`],
    [schedule.target.kind, plainCell(schedule.target.name, 200)],
    ["made by", schedule.source === "code" ? "code" : "hand"],
    ["missed", `${schedule.missed}${lateness(schedule.maxLatenessMs)}`],
    ["concurrency", schedule.target.kind === "event" ? null : schedule.concurrency],
    ["jitter", schedule.jitterMs === 0 ? null : `up to ${formatDuration(schedule.jitterMs)}`],
    ["start", start === null ? null : isoTime(start)],
    ["end", end === null ? null : isoTime(end)],
    ["fires", maxFires === null ? String(schedule.fires) : `${schedule.fires} of ${maxFires}`],
    ["failures", failures(schedule)],
    ["next", schedule.nextAt === null ? "none" : moment(schedule.nextAt)],
    ["last fired", schedule.lastFiredAt === null ? null : moment(schedule.lastFiredAt)],
    ["paused", paused === null ? null : moment(paused.at)],
    ["note", paused === null || paused.note === null ? null : plainCell(paused.note, 500)],
    ["created", moment(schedule.createdAt)],
    ["updated", moment(schedule.updatedAt)],
  ];
  const said = fields.filter((field): field is readonly [string, string] => field[1] !== null);
  return `${await showFields(said)}\n\n${schedule.target.kind === "event" ? "payload" : "params"}\n${showJson(schedule.params)}`;
}

function lateness(ms: number | null): string {
  return ms === null ? "" : `, at most ${formatDuration(ms)} late`;
}

function failures({ failures: count, pauseAfterFailures: most }: ScheduleRecord): string | null {
  return most === null ? null : `${count} in a row, pauses after ${most}`;
}

function moment(ms: number): string {
  const { ago, exact } = showTime(ms);
  return `${exact} (${ago})`;
}

export function scheduleTable(items: readonly ScheduleRecord[]): Promise<string> {
  return showTable(
    ["name", "when", "fires", "next", "last fired", "note"],
    items.map((each) => [
      plainCell(each.name, 32),
      plainCell(each.words, 48),
      `${each.target.kind} ${plainCell(each.target.name, 28)}`,
      timeCell(each.nextAt),
      timeCell(each.lastFiredAt),
      noteOf(each),
    ]),
  );
}

/** Why it has no next time. */
function noteOf({ paused, nextAt }: ScheduleRecord): string {
  if (paused !== null) return `paused${paused.note === null ? "" : `: ${plainCell(paused.note, 40)}`}`;
  return nextAt === null ? "over" : "";
}

export function decisionTable(items: readonly DecisionRecord[]): Promise<string> {
  return showTable(
    ["slot", "slots", "decision", "job or event", "note"],
    items.map((each) => [
      each.slots === 1 ? isoTime(each.at) : `${isoTime(each.at)}\n${isoTime(each.until)}`,
      String(each.slots),
      each.kind,
      each.jobId ?? each.eventId ?? "",
      plainCell(each.note ?? "", 60),
    ]),
  );
}

export function fireJson(fire: FirePreview): Record<string, unknown> {
  return { ...fire, at: isoTime(fire.at), fireAt: isoTime(fire.fireAt) };
}

const marks = { gap: "clock goes forward: moved", overlap: "clock goes back: this time comes twice" } as const;

export function fireTable(fires: readonly FirePreview[], here: string): Promise<string> {
  return showTable(
    ["fires (UTC)", "on its own clock", here, "mark"],
    fires.map((each) => [
      isoTime(each.fireAt),
      each.local,
      each.there,
      each.dst === null ? "" : `${each.dst} (${marks[each.dst]})`,
    ]),
  );
}
