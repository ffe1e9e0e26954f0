// The decisions as a heat map: a day a square, or an hour a square where the schedule is a frequent one. Each square is a button that
// leaves only its decisions in the ledger below, reached by the arrow keys.
import { useEffect, useRef } from "preact/hooks";
import type { VerbAnswer } from "../../../client/verbs.ts";
import { exact, serverNow } from "../../state/clock.ts";

type Decision = VerbAnswer<"schedules.decisions">["items"][number];
type Square = { readonly fired: number; readonly missed: number };
type Line = { readonly name: string; readonly squares: readonly (string | null)[] };
type Grid = { readonly heads: readonly string[]; readonly lines: readonly Line[] };

const weeks = 18;
const dayMs = 86_400_000;
const dayNames = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

type Props = {
  readonly decisions: readonly Decision[];
  readonly zone: string;
  /** The beginning of the moments that are chosen: "2026-11-20", or "2026-11-20 07" by the hour. */
  readonly chosen: string | undefined;
  readonly onChoose: (square: string | undefined) => void;
};

export function Calendar({ decisions, zone, chosen, onChoose }: Props) {
  const table = useRef<HTMLTableElement>(null);
  const box = useRef<HTMLDivElement>(null);
  // On a narrow screen today is in sight, and the past is scrolled to.
  useEffect(() => box.current?.scrollTo({ left: box.current.scrollWidth }), []);
  const oldest = decisions.at(-1)?.at ?? serverNow();
  const byHour = decisions.length > 20 && serverNow() - oldest < 8 * dayMs;
  const squares = squaresOf(decisions, zone, byHour ? 13 : 10);
  const { heads, lines } = byHour ? hours(zone, oldest) : days(zone);
  const most = Math.max(1, ...[...squares.values()].map(({ fired }) => fired));
  const all = [...squares.values()];
  const fired = all.reduce((sum, square) => sum + square.fired, 0);
  const missed = all.reduce((sum, square) => sum + square.missed, 0);

  function onKey(event: KeyboardEvent): void {
    const steps: Readonly<Record<string, readonly [down: number, right: number]>> = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
    };
    const step = steps[event.key];
    const from = event.target instanceof HTMLButtonElement ? event.target : undefined;
    if (step === undefined || from === undefined) return;
    event.preventDefault();
    let [line, column] = [Number(from.dataset["line"]), Number(from.dataset["column"])];
    while (line >= 0 && column >= 0 && line < lines.length && column < heads.length) {
      line += step[0];
      column += step[1];
      const next = table.current?.querySelector<HTMLButtonElement>(`[data-line="${line}"][data-column="${column}"]`);
      if (next) return next.focus();
    }
  }

  const reached = chosen ?? [...squares.keys()].toSorted().at(-1);
  return (
    <>
      <div ref={box} class="calendar-box">
        <table ref={table} class={`calendar${byHour ? " by-hour" : ""}`} onKeyDown={onKey}>
          <caption class="sr">
            {`${fired} slots fired and ${missed} did not. Each square is ${byHour ? "an hour" : "a day"}.`}
          </caption>
          <thead>
            <tr>
              <td />
              {heads.map((head, index) =>
                head === "" ? (
                  <td key={index} />
                ) : (
                  <th key={index} scope="col">
                    <span>{head}</span>
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {lines.map(({ name, squares: of }, line) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {of.map((square, column) => {
                  if (square === null) return <td key={column} />;
                  const found = squares.get(square);
                  const words = wordsOf(square, found);
                  return (
                    <td key={square}>
                      {found === undefined ? (
                        <i title={words} />
                      ) : (
                        <button
                          type="button"
                          class={found.missed > 0 ? "missed" : "fired"}
                          style={{ "--share": String(0.3 + 0.7 * (found.fired / most)) }}
                          title={words}
                          aria-label={words}
                          aria-pressed={square === chosen}
                          tabIndex={square === reached ? 0 : -1}
                          data-line={line}
                          data-column={column}
                          onClick={() => onChoose(square === chosen ? undefined : square)}
                        />
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="row wrap small soft calendar-legend">
        <span>{byHour ? "An hour a square" : `The last ${weeks} weeks, a day a square`}</span>
        <span class="grow" />
        <span class="legend">
          <i class="swatch" /> nothing due
        </span>
        <span class="legend">
          <i class="swatch good" /> fired
        </span>
        <span class="legend">
          <i class="swatch bad missed-mark" /> some did not
        </span>
      </p>
    </>
  );
}

function wordsOf(square: string, found: Square | undefined): string {
  const when = square.length > 10 ? `${square}:00` : square;
  if (found === undefined) return `${when}: no slot`;
  return `${when}: ${found.fired} fired${found.missed === 0 ? "" : `, ${found.missed} did not`}`;
}

/** Weekdays down, weeks across. */
function days(zone: string): Grid {
  const today = serverNow();
  const name = (at: number): string => exact(at, { own: zone }).slice(0, 10);
  const weekday = (new Date(`${name(today)}T00:00:00Z`).getUTCDay() + 6) % 7;
  const first = today - (weekday + (weeks - 1) * 7) * dayMs;
  const mondays = Array.from({ length: weeks }, (_, week) => name(first + week * 7 * dayMs));
  return {
    heads: mondays.map((monday, week) =>
      week === 0 || monday.slice(0, 7) !== mondays[week - 1]?.slice(0, 7) ? monthOf(monday) : "",
    ),
    lines: dayNames.map((day, line) => ({
      name: day,
      squares: mondays.map((_, week) => {
        const at = first + (week * 7 + line) * dayMs;
        return at > today ? null : name(at);
      }),
    })),
  };
}

/** Days down, hours across. */
function hours(zone: string, oldest: number): Grid {
  const today = serverNow();
  const names = Array.from({ length: Math.ceil((today - oldest) / dayMs) + 1 }, (_, back) =>
    exact(today - back * dayMs, { own: zone }).slice(0, 10),
  );
  const now = exact(today, { own: zone }).slice(0, 13);
  const ofDay = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
  return {
    heads: ofDay.map((hour) => (Number(hour) % 3 === 0 ? hour : "")),
    lines: names.map((name) => ({
      name: name.slice(5),
      squares: ofDay.map((hour) => (`${name} ${hour}` > now ? null : `${name} ${hour}`)),
    })),
  };
}

function monthOf(day: string): string {
  return new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));
}

function squaresOf(decisions: readonly Decision[], zone: string, length: number): ReadonlyMap<string, Square> {
  const squares = new Map<string, Square>();
  for (const { at, kind, slots } of decisions) {
    const name = exact(at, { own: zone }).slice(0, length);
    const { fired, missed } = squares.get(name) ?? { fired: 0, missed: 0 };
    const isMissed = kind.startsWith("skipped");
    squares.set(name, { fired: fired + (isMissed ? 0 : slots), missed: missed + (isMissed ? slots : 0) });
  }
  return squares;
}
