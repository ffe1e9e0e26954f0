// A moment on the clock of a zone.

export type Clock = {
  /** 2026-11-18 */
  readonly day: string;
  /** 09:30:00 */
  readonly clock: string;
  readonly millis: string;
  /** Z, or +01:00 */
  readonly offset: string;
};

export function inZone(ms: number, zone: string): Clock {
  const offset = zone === "UTC" ? "Z" : offsetOf(ms, zone);
  const minutes = offset === "Z" ? 0 : (offset.startsWith("-") ? -1 : 1) * minutesOf(offset);
  const [day = "", rest = ""] = new Date(ms + minutes * 60_000).toISOString().split("T");
  return { day, clock: rest.slice(0, 8), millis: rest.slice(9, 12), offset };
}

function minutesOf(offset: string): number {
  const [hours = "0", minutes = "0"] = offset.slice(1).split(":");
  return Number(hours) * 60 + Number(minutes);
}

function offsetOf(ms: number, zone: string): string {
  const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  const name = format.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
  // Zones of long ago were off by seconds, too; minutes are enough to read.
  return /[+-]\d\d:\d\d/.exec(name)?.[0] ?? "Z";
}
