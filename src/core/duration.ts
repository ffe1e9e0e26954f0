import { invalid } from "./error.ts";
import { limits } from "./limits.ts";
import { quote } from "./quote.ts";

/** Milliseconds, or text such as "250ms", "30s", "5m", "1h30m", "7d", "2w". */
export type Duration = number | string;

// From the biggest to the smallest, which is also the order in which they must be written.
const unitsMs = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;

// A unit appears at most once and in order: "30m1h" and "1h1h" are typing errors, not durations.
const pattern = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;

const examples = 'use milliseconds as a whole number, or text such as "250ms", "30s", "5m", "1h30m", "7d", "2w"';

export function durationMs(value: Duration, what = "duration", options: { min?: number; max?: number } = {}): number {
  const ms = typeof value === "number" ? value : textMs(value);
  if (ms === undefined || !Number.isInteger(ms) || ms < 0) {
    throw invalid(`${what} is ${quote(value)}, which ${adviceFor(value)}`);
  }
  const { min = 0, max = limits.durationMsMax } = options;
  if (ms < min) throw invalid(`${what} is ${quote(value)}; it must be at least ${formatDuration(min)}`);
  if (ms > max) throw invalid(`${what} is ${quote(value)}; it must be at most ${formatDuration(max)}`);
  return ms === 0 ? 0 : ms;
}

function adviceFor(value: unknown): string {
  // On the command line everything is text, so "a whole number" would be no advice.
  if (typeof value === "string" && /^\d{1,15}$/.test(value)) {
    return `has no unit; write "${value}ms", "${value}s", "${value}m", "${value}h" or "${value}d"`;
  }
  return `is not a duration; ${examples}`;
}

function textMs(value: unknown): number | undefined {
  // Every part of the pattern is optional, so an empty text must be refused here.
  if (typeof value !== "string" || value === "") return undefined;
  // One space between parts is allowed, because `formatDuration` writes it.
  const parts = pattern.exec(value.replaceAll(/(?<=[a-z]) (?=\d)/g, ""));
  if (parts === null) return undefined;
  return Object.values(unitsMs).reduce((sum, unitMs, index) => sum + Number(parts[index + 1] ?? 0) * unitMs, 0);
}

/** Short text for people: at most two neighbouring units, the rest is cut off ("1h 30m", "250ms", "3d"). */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms);
  const whole = Math.round(Math.abs(ms));
  const sign = ms < 0 && whole > 0 ? "-" : "";
  // Weeks are read but not written: "10d" is understood at once, "1w 3d" is not.
  const units = Object.entries(unitsMs).filter(([unit]) => unit !== "w");
  const first = units.findIndex(([, unitMs]) => whole >= unitMs);
  if (first < 0) return "0ms";
  let rest = whole;
  const parts: string[] = [];
  for (const [unit, unitMs] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    if (count > 0) parts.push(`${count}${unit}`);
  }
  return sign + parts.join(" ");
}
