// The server's time: what is "3 s ago" is so by the clock that wrote it, however wrong this machine's is.
import { signal } from "@preact/signals";
import { everyAnywhere, wallMs } from "../../core/anywhere.ts";
import { zone } from "./settings.ts";

let aheadMs = 0;

/** `date` is the header of an answer, whole seconds. */
export function hearServerTime(date: string | null): void {
  const said = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(said)) return;
  const off = said + 500 - wallMs();
  aheadMs = Math.abs(off) < 2000 ? 0 : off;
}

export function serverNow(): number {
  return wallMs() + aheadMs;
}

/** Ticks once a second, while somebody looks. */
export const now = signal(serverNow());
everyAnywhere(1000, () => {
  if (!document.hidden) now.value = serverNow();
});

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
] as const;

/** "3 m ago", "in 2 h". */
export function relative(at: number, from: number): string {
  const off = at - from;
  if (Math.abs(off) < 1500) return "now";
  const [unit, ms] = units.find(([, each]) => Math.abs(off) >= each) ?? ["s", 1000];
  const many = Math.floor(Math.abs(off) / ms);
  return off < 0 ? `${many} ${unit} ago` : `in ${many} ${unit}`;
}

/** The zone that times are shown in. A page about a schedule gives the schedule's own. */
export function zoneName(own?: string): string {
  if (zone.value === "utc") return "UTC";
  if (zone.value === "schedule" && own !== undefined) return own;
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** "2026-11-19 23:46:39", with milliseconds where they are asked for. */
export function exact(at: number, { own, ms = false }: { own?: string | undefined; ms?: boolean } = {}): string {
  if (!Number.isFinite(at)) return "never";
  const name = zoneName(own);
  const found = formats.get(name) ?? makeFormat(name);
  formats.set(name, found);
  const part = Object.fromEntries(found.formatToParts(at).map(({ type, value }) => [type, value]));
  const fraction = ms ? `.${String(((at % 1000) + 1000) % 1000).padStart(3, "0")}` : "";
  return `${part["year"]}-${part["month"]}-${part["day"]} ${part["hour"]}:${part["minute"]}:${part["second"]}${fraction}`;
}

function makeFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat("en-CA", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

/** "240 ms", "3.2 s", "5 m 12 s". */
export function duration(ms: number): string {
  if (ms < 1) return "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}
