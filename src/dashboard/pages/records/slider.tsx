// The time of a record or a type: a mark for each change on one line, and a handle that goes from mark to mark.
import { useRef } from "preact/hooks";
import { Button } from "../../parts/button.tsx";
import { exact } from "../../state/clock.ts";

export type Mark = {
  readonly id: number;
  readonly at: number;
  readonly kind: "created" | "updated" | "deleted" | "commit";
  /** "revision 3 by ada: paid". */
  readonly text: string;
};

type SliderProps = {
  readonly label: string;
  /** The newest first. */
  readonly marks: readonly Mark[];
  readonly chosen: number;
  /** A mark that the chosen one is compared with. */
  readonly compared?: number | undefined;
  readonly onChoose: (index: number) => void;
};

export function Slider({ label, marks, chosen, compared, onChoose }: SliderProps) {
  const track = useRef<HTMLDivElement>(null);
  const last = marks.length - 1;
  const places = marks.map((_, index) => placeOf(marks, index));
  const current = marks[chosen];

  function choose(index: number): void {
    const next = Math.min(last, Math.max(0, index));
    if (next !== chosen) onChoose(next);
  }

  function chooseAt({ clientX }: PointerEvent): void {
    const box = track.current?.getBoundingClientRect();
    if (box === undefined) return;
    const share = (clientX - box.left) / box.width;
    const offs = places.map((place) => Math.abs(place - share));
    choose(offs.indexOf(Math.min(...offs)));
  }

  function onKey(event: KeyboardEvent): void {
    const page = Math.max(1, Math.round(marks.length / 10));
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: chosen + 1,
      ArrowDown: chosen + 1,
      ArrowRight: chosen - 1,
      ArrowUp: chosen - 1,
      PageDown: chosen + page,
      PageUp: chosen - page,
      Home: last,
      End: 0,
    };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    choose(next);
  }

  return (
    <div class="slider">
      <div class="row">
        <Button
          icon="left"
          label="The change before"
          kind="quiet"
          whyNot={chosen >= last ? "This is the first one" : undefined}
          onPress={() => choose(chosen + 1)}
        />
        <div
          ref={track}
          class="slider-track grow"
          role="slider"
          tabIndex={0}
          aria-label={label}
          aria-valuemin={1}
          aria-valuemax={marks.length}
          aria-valuenow={marks.length - chosen}
          aria-valuetext={current === undefined ? "" : `${current.text}, ${exact(current.at)}`}
          onKeyDown={onKey}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            chooseAt(event);
          }}
          onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && chooseAt(event)}
        >
          <span class="slider-past" style={{ width: `${100 * (places[chosen] ?? 0)}%` }} />
          {marks.map(({ id, at, kind, text }, index) => (
            <i
              key={id}
              class={`${kind}${index === chosen ? " chosen" : ""}${index === compared ? " compared" : ""}`}
              style={{ left: `${100 * (places[index] ?? 0)}%` }}
              title={`${text}, ${exact(at)}`}
            />
          ))}
        </div>
        <Button
          icon="right"
          label="The change after"
          kind="quiet"
          whyNot={chosen <= 0 ? "This is the last one" : undefined}
          onPress={() => choose(chosen - 1)}
        />
      </div>
      <div class="slider-words small soft">
        <span>{exact(marks[last]?.at ?? 0)}</span>
        <b class="center">{current === undefined ? "" : `${current.text} · ${exact(current.at)}`}</b>
        <span>{exact(marks[0]?.at ?? 0)}</span>
      </div>
    </div>
  );
}

/** Half by the time and half by the order, so that changes of the same second stand apart. */
function placeOf(marks: readonly Mark[], index: number): number {
  const oldest = marks.at(-1)?.at ?? 0;
  const span = (marks[0]?.at ?? 0) - oldest;
  const byOrder = marks.length < 2 ? 1 : 1 - index / (marks.length - 1);
  const byTime = span <= 0 ? byOrder : ((marks[index]?.at ?? 0) - oldest) / span;
  return (byOrder + byTime) / 2;
}
