// The decisions of the last weeks, a square for each day: how many fired, and whether any was missed.
import type { VerbAnswer } from "../../../client/verbs.ts";
import { exact, serverNow } from "../../state/clock.ts";

type Decision = VerbAnswer<"schedules.decisions">["items"][number];
type Day = { readonly fired: number; readonly missed: number };

const weeks = 18;
const dayMs = 86_400_000;

export function Calendar({ decisions, zone }: { readonly decisions: readonly Decision[]; readonly zone: string }) {
  const days = daysOf(decisions, zone);
  const today = serverNow();
  const weekday = (new Date(today).getUTCDay() + 6) % 7;
  const first = today - (weekday + (weeks - 1) * 7) * dayMs;
  const names = Array.from({ length: weeks * 7 }, (_, index) => first + index * dayMs)
    .filter((at) => at <= today)
    .map((at) => exact(at, { own: zone }).slice(0, 10));
  const most = Math.max(1, ...[...days.values()].map(({ fired }) => fired));
  return (
    <>
      <div class="calendar" role="img" aria-label={summary(days)}>
        {names.map((name) => {
          const day = days.get(name);
          return (
            <i
              key={name}
              class={day === undefined ? "" : day.missed > 0 ? "missed" : "fired"}
              style={day === undefined ? {} : { "--share": String(0.25 + 0.75 * (day.fired / most)) }}
              title={
                day === undefined
                  ? `${name}: no slot`
                  : `${name}: ${day.fired} fired${day.missed === 0 ? "" : `, ${day.missed} not`}`
              }
            />
          );
        })}
      </div>
      <p class="small faint">{`The last ${weeks} weeks, as far as decisions are kept`}</p>
    </>
  );
}

function daysOf(decisions: readonly Decision[], zone: string): ReadonlyMap<string, Day> {
  const days = new Map<string, Day>();
  for (const { at, kind, slots } of decisions) {
    const name = exact(at, { own: zone }).slice(0, 10);
    const { fired, missed } = days.get(name) ?? { fired: 0, missed: 0 };
    const isMissed = kind.startsWith("skipped");
    days.set(name, { fired: fired + (isMissed ? 0 : slots), missed: missed + (isMissed ? slots : 0) });
  }
  return days;
}

function summary(days: ReadonlyMap<string, Day>): string {
  const all = [...days.values()];
  const fired = all.reduce((sum, day) => sum + day.fired, 0);
  const missed = all.reduce((sum, day) => sum + day.missed, 0);
  return `On ${days.size} days ${fired} slots fired and ${missed} did not`;
}
