// Due times around clock changes; as a program it prints them, so that a Node without Temporal can be asked too.
import { createTiming } from "../../src/schedules/timing/timing.ts";

const zones = ["Europe/Madrid", "America/Sao_Paulo", "Australia/Lord_Howe", "America/Nuuk", "Asia/Kolkata", "UTC"];

export function dueTimes(): string[] {
  return zones.flatMap((zone) =>
    ["30 2 * * *", "0 0 * * 0", "30 23 * * *"].flatMap((cron) => {
      const timing = createTiming({ cron }, { zone });
      return [2018, 2026].flatMap((year) => {
        const times: string[] = [];
        for (
          let slot = timing.next(Date.UTC(year, 0));
          slot !== null && times.length < 366;
          slot = timing.next(slot.at)
        ) {
          times.push(`${slot.at} ${slot.local} ${slot.dst}`);
        }
        return times;
      });
    }),
  );
}

if (import.meta.main) console.log(JSON.stringify({ temporal: typeof globalThis.Temporal, times: dueTimes() }));
