import { Icon } from "../parts/icon.tsx";
import { factsPerSecond, isPaused, liveState } from "../state/live.ts";

/** Whether the page follows what happens; pressing it pauses. */
export function LiveChip() {
  const state = isPaused.value ? "paused" : liveState.value;
  const words = {
    connected: "Live",
    connecting: "Connecting",
    reconnecting: "Reconnecting",
    paused: "Paused",
  } as const;
  return (
    <button
      type="button"
      class={`live ${state}`}
      aria-pressed={isPaused.value}
      title={isPaused.value ? "Go on with updates (p)" : "Pause updates (p)"}
      onClick={() => (isPaused.value = !isPaused.value)}
    >
      {state === "paused" ? <Icon name="pause" size={12} /> : <i class="live-dot" aria-hidden="true" />}
      <span aria-live="polite">{words[state]}</span>
      {state === "connected" && factsPerSecond.value > 0 ? (
        <span class="faint live-rate">{factsPerSecond.value}/s</span>
      ) : null}
    </button>
  );
}
