// What happened to one thing, in the order in which it happened.
import type { ComponentChildren } from "preact";
import { duration } from "../state/clock.ts";
import type { Tone } from "./status.tsx";
import { Time } from "./time.tsx";

export type Happening = {
  readonly at: number | null;
  readonly title: ComponentChildren;
  readonly tone?: Tone;
  readonly note?: ComponentChildren;
  /** How long it took, where that says more than the time since what stands before it. */
  readonly after?: string;
};

export function Timeline({ of, label }: { readonly of: readonly Happening[]; readonly label: string }) {
  return (
    <ol class="timeline" aria-label={label}>
      {of.map(({ at, title, tone = "quiet", note, after }, index) => {
        const before = of[index - 1]?.at ?? null;
        return (
          <li key={index} class={tone}>
            <div class="row wrap">
              <b>{title}</b>
              <span class="soft small">
                {at === null ? null : <Time at={at} whole />}
                {after !== undefined ? (
                  <span class="faint"> · {after}</span>
                ) : at !== null && before !== null && at - before >= 1 ? (
                  <span class="faint"> · {duration(at - before)} later</span>
                ) : null}
              </span>
            </div>
            {note === undefined || note === null ? null : <div class="timeline-note">{note}</div>}
          </li>
        );
      })}
    </ol>
  );
}
