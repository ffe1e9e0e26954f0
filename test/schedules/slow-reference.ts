// When schedules are due, worked out the slow way: by Temporal alone, day by day and minute by minute, with nothing of the
// product and no cron library. What the product computes is compared with it.

export type Changes = { readonly gap?: "shift" | "skip"; readonly ambiguous?: "first" | "last" | "both" };
export type SlowSlot = { readonly at: number; readonly local: string; readonly dst: "gap" | "ambiguous" | null };

/** The slots of a schedule that names one local time of every day. */
export function slowDaily(
  zone: string,
  time: string,
  days: readonly Temporal.PlainDate[],
  changes: Changes,
): SlowSlot[] {
  const clock = Temporal.PlainTime.from(time);
  return inOrder(days.flatMap((day) => resolve(zone, day.toPlainDateTime(clock), changes)));
}

/** The slots of a schedule that names several local times: every minute of every day is asked. */
export function slowCalendar(
  zone: string,
  days: readonly Temporal.PlainDate[],
  due: (local: Temporal.PlainDateTime) => boolean,
  changes: Changes,
): SlowSlot[] {
  const slots: SlowSlot[] = [];
  for (const day of days) {
    for (let minute = 0; minute < 1440; minute++) {
      const local = day.toPlainDateTime().add({ minutes: minute });
      if (due(local)) slots.push(...resolve(zone, local, changes));
    }
  }
  return inOrder(slots);
}

/** The slots of a schedule of every hour: every real minute is asked what its local clock reads. */
export function slowClock(
  zone: string,
  span: { readonly from: number; readonly to: number },
  due: (local: Temporal.PlainDateTime) => boolean,
): number[] {
  const slots: number[] = [];
  for (let at = Math.ceil(span.from / 60_000) * 60_000; at < span.to; at += 60_000) {
    if (due(zoned(zone, at).toPlainDateTime())) slots.push(at);
  }
  return slots;
}

/** The local days in which the zone's clock was changed, found by comparing each day's offset with the next. */
export function changeDays(zone: string, year: number): Temporal.PlainDate[] {
  const days: Temporal.PlainDate[] = [];
  const dayMs = 86_400_000;
  let before = zoned(zone, Date.UTC(year, 0, 1));
  for (let at = Date.UTC(year, 0, 2); at <= Date.UTC(year + 1, 0, 1); at += dayMs) {
    const after = zoned(zone, at);
    if (after.offsetNanoseconds !== before.offsetNanoseconds) days.push(before.toPlainDate());
    before = after;
  }
  return days;
}

export function daysAround(day: Temporal.PlainDate, before: number, after: number): Temporal.PlainDate[] {
  return Array.from({ length: before + after + 1 }, (_, index) => day.add({ days: index - before }));
}

function resolve(
  zone: string,
  local: Temporal.PlainDateTime,
  { gap = "shift", ambiguous = "first" }: Changes,
): SlowSlot[] {
  const first = local.toZonedDateTime(zone, { disambiguation: "earlier" });
  const last = local.toZonedDateTime(zone, { disambiguation: "later" });
  const text = local.toString({ smallestUnit: "second" });
  if (!first.toPlainDateTime().equals(local)) {
    return gap === "skip" ? [] : [{ at: endOfGap(first, local), local: text, dst: "gap" }];
  }
  if (first.epochMilliseconds === last.epochMilliseconds)
    return [{ at: first.epochMilliseconds, local: text, dst: null }];
  const chosen = { first: [first], last: [last], both: [first, last] }[ambiguous];
  return chosen.map((each) => ({ at: each.epochMilliseconds, local: text, dst: "ambiguous" }));
}

/** The first minute whose clock reads a time after the one that was left out. */
function endOfGap(before: Temporal.ZonedDateTime, local: Temporal.PlainDateTime): number {
  let time = before;
  while (Temporal.PlainDateTime.compare(time.toPlainDateTime(), local) < 0) time = time.add({ minutes: 1 });
  return time.epochMilliseconds;
}

/** Times that were moved to one moment are one slot, called by the first; a time that really reads so comes before them. */
function inOrder(slots: readonly SlowSlot[]): SlowSlot[] {
  const sorted = slots.toSorted(
    (a, b) => a.at - b.at || Number(a.dst === "gap") - Number(b.dst === "gap") || (a.local < b.local ? -1 : 1),
  );
  return sorted.filter((slot, index) => slot.at !== sorted[index - 1]?.at);
}

function zoned(zone: string, at: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
}
