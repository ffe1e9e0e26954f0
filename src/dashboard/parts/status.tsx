// A state of anything, in one shape: an icon, a word and a colour, so that none of them is needed alone.
import { Icon, type IconName } from "./icon.tsx";

type Look = { readonly tone: Tone; readonly icon: IconName };
export type Tone = "good" | "bad" | "warn" | "busy" | "lost" | "quiet";

const looks: Readonly<Record<string, Look>> = {
  ...look(
    "good",
    "check",
    "completed",
    "success",
    "succeeded",
    "acked",
    "done",
    "fired",
    "ok",
    "live",
    "ready",
    "recovered",
  ),
  ...look("good", "check", "excellent", "good", "late", "caught_up", "manual", "backfilled", "shifted_dst"),
  ...look("bad", "cross", "failed", "error", "dead", "dead_lettered", "critical", "trouble"),
  ...look("warn", "warn", "timed_out", "partial", "attention", "warning", "held", "unheard", "cancelling"),
  ...look("warn", "clock", "waiting", "scheduled", "pending", "catching_up", "starting"),
  ...look("busy", "run", "running", "claimed", "redriving", "open", "active"),
  ...look("quiet", "queue", "queued"),
  ...look("quiet", "skip", "skipped", "skipped_missed", "skipped_overlap", "skipped_paused"),
  ...look(
    "quiet",
    "close",
    "cancelled",
    "discarded",
    "stopped",
    "retired",
    "archived",
    "released",
    "expired",
    "revoked",
  ),
  ...look("quiet", "pause", "paused"),
  ...look("lost", "lost", "lost", "unknown", "suspended"),
};

function look(tone: Tone, icon: IconName, ...names: readonly string[]): Record<string, Look> {
  return Object.fromEntries(names.map((name) => [name, { tone, icon }]));
}

export function toneOf(status: string): Tone {
  return looks[status]?.tone ?? "quiet";
}

export function Status({ status, note }: { readonly status: string; readonly note?: string | null | undefined }) {
  const { tone, icon } = looks[status] ?? { tone: "quiet", icon: "dot" };
  const shown = (
    <span class={`status ${tone}`}>
      <Icon name={icon} size={12} />
      <span>{status.replaceAll("_", " ")}</span>
    </span>
  );
  if (!note) return shown;
  return (
    <span class="status-line">
      {shown}
      <bdi class="status-note" title={note}>
        {note}
      </bdi>
    </span>
  );
}
