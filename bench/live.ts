// What a live listener costs the event loop: hearing an event, running its handler, and the row of its run in the book.
import { systemClock } from "../src/core/clock.ts";
import { openLiveBus, type LiveBus } from "../src/events/live/bus.ts";
import { defineLive, type LiveOptions } from "../src/events/live/define.ts";
import { LiveContext } from "../src/events/live/live-run.ts";
import { where } from "../src/events/live/where.ts";
import { openPatternIndex } from "../src/events/topic.ts";
import { migrations } from "../src/open/migrations.ts";
import { openStore } from "../src/storage/open-store.ts";
import { thisProcess } from "../src/telemetry/process-identity.ts";
import { openRunWriter, type RunWriter } from "../src/telemetry/run-writer.ts";
import { startSession } from "../src/telemetry/session.ts";
import type { Benchmark } from "./harness/benchmark.ts";
import type { Report } from "./harness/report.ts";
import { scratch } from "./harness/scratch.ts";

const runsPerRound = 1000;
const rounds = 40;
const runUsMax = 10;

export const live: Benchmark = {
  name: "live",
  title: "live listeners and patterns of topics",
  async run(report) {
    matchPatterns(report);
    const store = await openStore(scratch("live.db"), migrations);
    const session = await store.write((tx) => startSession(tx, thisProcess(), "{}"));
    const writer = openRunWriter(store, () => session);
    const bus = openLiveBus({
      clock: systemClock,
      ids: store.ids,
      writer,
      session: () => session,
      contextFor: (run) => new LiveContext(run),
    });
    report.note(
      `one time is a round of ${runsPerRound} runs; 10 ms are 10 µs each. Work is the thread's own processor time`,
    );
    await measure(report, bus, writer, "a handler that ends at once", { run: () => undefined });
    await measure(report, bus, writer, "a handler that waits", { run: () => Promise.resolve() });
    await measure(report, bus, writer, "with a predicate, a timeout and its signal", {
      where: where.all(where.above("level", 3), where.changed("level")),
      timeout: "10s",
      run: (_payload, { signal }) => Promise.resolve(signal),
    });
    await bus.close();
    await store.close();
  },
};

type Options = Omit<LiveOptions<unknown, { readonly signal: AbortSignal }>, "on" | "live">;

async function measure(report: Report, bus: LiveBus, writer: RunWriter, what: string, options: Options): Promise<void> {
  const { detach } = bus.attach(defineLive("measured", { on: "sensor.*", live: true, ...options }), "default");
  for (let other = 0; other < 100; other++) {
    bus.attach(
      defineLive(`other ${what} ${other}`, { on: `other.${other}`, live: true, run: () => undefined }),
      "default",
    );
  }
  const times: number[] = [];
  const walls: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    const cpu = process.threadCpuUsage();
    for (let n = 0; n < runsPerRound; n++) {
      bus.emit("default", `sensor.${n % 50}`, { level: 4 + n + round });
      // Readings come one by one, not a thousand in one turn of the loop; the turn itself is not ours and costs little.
      if (n % 100 === 99) await systemClock.nextTurn();
    }
    await writer.drain();
    // The first rounds are the compiler's.
    if (round < 5) continue;
    const { user, system } = process.threadCpuUsage(cpu);
    times.push((user + system) / 1000);
    walls.push(performance.now() - begun);
  }
  report.times(`${what}: work of the loop`, times, { goalMsMax: (runUsMax * runsPerRound) / 1000 });
  report.times(`${what}: until all is on disk`, walls);
  const { runs, logs, events } = writer.dropped;
  if (runs + logs + events > 0) report.note(`dropped: ${runs} runs, ${logs} lines, ${events} events`);
  await detach();
}

function matchPatterns(report: Report): void {
  const wild = openPatternIndex<number>();
  wild.add(`${"*.".repeat(30)}end`, 1);
  wild.add(`${"*.".repeat(29)}*.>`, 2);
  const long = `${"ab.".repeat(3413)}x`;
  report.times(
    "30 wildcards, one topic of 10 KB",
    timed(() => wild.match(long)),
    { goalMsMax: 50 },
  );

  const many = openPatternIndex<number>();
  for (let n = 0; n < 10_000; n++) many.add(n % 2 === 0 ? `light.room-${n}.*` : `*.room-${n}.changed`, n);
  report.times(
    "10,000 patterns, one event",
    timed(() => many.match("light.room-77.changed")),
    { goalMsMax: 5 },
  );
}

function timed(run: () => unknown): number[] {
  return Array.from({ length: 100 }, () => {
    const begun = performance.now();
    run();
    return performance.now() - begun;
  });
}
