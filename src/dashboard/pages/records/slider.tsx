// The time of a record: a mark for each change, and a slider that goes from one to the next.
import { exact } from "../../state/clock.ts";
import type { Version } from "./record.tsx";

type SliderProps = {
  readonly versions: readonly Version[];
  readonly chosen: number;
  readonly onChoose: (index: number) => void;
};

/** `versions` are the newest first; the slider goes from left, the oldest, to right. */
export function Slider({ versions, chosen, onChoose }: SliderProps) {
  const oldest = versions.at(-1)?.at ?? 0;
  const span = Math.max(1, (versions[0]?.at ?? 0) - oldest);
  const last = versions.length - 1;
  const current = versions[chosen];
  return (
    <div class="slider">
      <div class="slider-marks" aria-hidden="true">
        {versions.map(({ commit, at, kind }, index) => (
          <i
            key={commit}
            class={`${kind}${index === chosen ? " chosen" : ""}`}
            style={{ left: `${(100 * (at - oldest)) / span}%` }}
            title={`${kind} ${exact(at)}`}
          />
        ))}
      </div>
      <input
        type="range"
        min={0}
        max={last}
        step={1}
        value={last - chosen}
        disabled={last < 1}
        aria-label="Version"
        aria-valuetext={current === undefined ? "" : `revision ${current.revision}, ${exact(current.at)}`}
        onInput={({ currentTarget }) => onChoose(last - Number(currentTarget.value))}
      />
      <div class="row small soft">
        <span>{exact(oldest)}</span>
        <span class="grow center">
          {current === undefined ? "" : `${current.kind} by ${current.actor ?? "nobody named"}, ${exact(current.at)}`}
        </span>
        <span>{exact(versions[0]?.at ?? 0)}</span>
      </div>
    </div>
  );
}
