// How long it takes to say when a schedule is due next and to fire those that are, for as many as a large book has.
import { Cron } from "croner";
import { type StoredTiming, createTiming, restoreTiming } from "../src/schedules/timing/timing.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import { dueAtOnce } from "./schedules/due-at-once.ts";

const schedulesCount = 10_000;
const nextUsMax = 10;

const zones = [
  "UTC Europe/Madrid Europe/London Europe/Berlin America/New_York America/Chicago America/Los_Angeles America/Sao_Paulo",
  "America/Santiago America/Havana Asia/Tokyo Asia/Kolkata Asia/Beirut Asia/Shanghai Australia/Sydney",
  "Australia/Lord_Howe Africa/Cairo Africa/Casablanca Pacific/Auckland Pacific/Chatham",
].flatMap((line) => line.split(" "));

/** Fifty: times of the day, intervals, weekdays, ends of months, and a few that are rarely due. */
const expressions = [
  ...Array.from({ length: 24 }, (_, hour) => `${(hour * 7) % 60} ${hour} * * *`),
  ...Array.from({ length: 10 }, (_, index) => `*/${index + 2} * * * *`),
  ...Array.from({ length: 6 }, (_, index) => `30 ${index + 6} * * MON-FRI`),
  ..."0 0 L * *,0 9 15W * *,0 9 * * MON#1,0 0 1 1 *,0 0 29 2 *,0 0 13 * 5,*/15 9-17 * * 1-5".split(","),
  ..."* * * * * *,15 0 2 * * *,0 0 LW * *".split(","),
];

export const schedules: Benchmark = {
  name: "schedules",
  title: `${schedulesCount} schedules: ${expressions.length} expressions, ${zones.length} zones`,
  async run(report) {
    const stored = Array.from({ length: schedulesCount }, (_, index) => definition(index));
    const begun = performance.now();
    const timings = stored.map((each) => restoreTiming(each));
    report.times("restoring all of them", [performance.now() - begun]);

    const times: number[] = [];
    const start = Date.UTC(2026, 0, 1);
    // A week between the rounds, so that the year's clock changes are among them.
    for (let round = 0; round < 52; round++) {
      const at = start + round * 604_800_000;
      const roundBegun = performance.now();
      for (const timing of timings) timing.next(at);
      times.push(performance.now() - roundBegun);
    }
    report.note("one time is a round over all schedules; 10 ms are 1 µs each");
    report.times("next() of all, 52 weeks", times, {
      goalMsMax: (nextUsMax * schedulesCount) / 1000,
      referenceMs: cronerRounds(stored, start),
    });
    await dueAtOnce(report, schedulesCount);
  },
};

function definition(index: number): StoredTiming {
  const cron = expressions[index % expressions.length] ?? "@daily";
  const zone = zones[Math.floor(index / expressions.length) % zones.length] ?? "UTC";
  return createTiming({ cron }, { zone }).stored;
}

/** Croner's own search, for a tenth of the schedules and two weeks, because it would take minutes. */
function cronerRounds(stored: readonly StoredTiming[], start: number): number[] {
  const some = stored.filter((_, index) => index % 10 === 3);
  const crons = some.map(({ expression, zone }) => new Cron(expression, { timezone: zone, paused: true }));
  return [0, 26].map((week) => {
    const begun = performance.now();
    for (const cron of crons) cron.nextRun(new Date(start + week * 604_800_000));
    return (performance.now() - begun) * 10;
  });
}
