// npm run bench:peers, or npm run bench:peers -- --jobs 2000
//
// Daybook beside its peers on one machine, in one run: each in a process of its own, one after another, three rounds whose
// order turns around. A slow machine is not an error: the exit code is 0 whether or not the goals are met.
import { parseArgs } from "node:util";
import { durablePostgres } from "../../test/support/postgres.ts";
import { describeMachine } from "../harness/machine.ts";
import { measureQueue, sized, type Figures } from "../harness/measure-queue.ts";
import { median } from "../harness/median.ts";
import { describePostgres } from "../harness/place.ts";
import { digits, perSecond, printTable } from "../harness/table.ts";
import { judge } from "./goals.ts";
import { installPeers } from "./peer.ts";
import { redisVersion } from "./redis.ts";
import { systems, type System, type SystemName } from "./systems.ts";

const rounds = 3;

const { values } = parseArgs({ options: { jobs: { type: "string", default: "20000" } } });
const jobs = Number(values.jobs);
if (Number.isInteger(jobs) && jobs >= 100) await run();
else {
  console.error(`--jobs ${values.jobs} is not a whole number of at least 100`);
  process.exitCode = 2;
}

async function run(): Promise<void> {
  installPeers();
  console.log(describeMachine());
  const server = await durablePostgres();
  try {
    console.log(`${await describePostgres(server.url)}\n${redisVersion() ?? "no Redis"}\n`);
    const measured = await measureAll(server.url);
    printAbout(measured);
    printFigures(measured);
    console.log("\nthe goals, as the median of the rounds' ratios (the least and the greatest)\n");
    printTable(judge(measured));
  } finally {
    await server.stop();
  }
}

async function measureAll(postgres: string): Promise<Map<SystemName, Figures[]>> {
  const found = systems.filter(isThere);
  const measured = new Map<SystemName, Figures[]>(found.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const system of round % 2 === 0 ? found : found.toReversed()) {
      const size = sized(Math.ceil(jobs * (system.share ?? 1)), [100]);
      const figures = await system.place(postgres, (place) => measureQueue({ module: system.module, place, ...size }));
      measured.get(system.name)?.push(figures);
      console.log(`round ${round + 1} of ${rounds}, ${system.name}: ${cellsOf([figures]).join(", ")}`);
    }
  }
  return measured;
}

function isThere({ name, missing }: System): boolean {
  const reason = missing?.();
  if (reason !== undefined) console.log(`${name} is left out: ${reason}`);
  return reason === undefined;
}

function printAbout(measured: ReadonlyMap<SystemName, readonly Figures[]>): void {
  console.log("\nversions; what an acknowledged enqueue and a completion survive; settings\n");
  for (const [name, [first]] of measured) {
    if (first === undefined) continue;
    const { version, durability, settings } = first.about;
    console.log(`  ${name}: ${version}; survives ${durability}; ${settings}`);
  }
}

function printFigures(measured: ReadonlyMap<SystemName, readonly Figures[]>): void {
  console.log(`\n${jobs} jobs, medians of ${rounds} rounds\n`);
  printTable([
    ["", "enqueue, 100 in flight", "drain, 100 places", "p50 idle", "p50 idle after the drain", "memory"],
    ...[...measured].map(([name, figures]) => [name, ...cellsOf(figures)]),
  ]);
}

function cellsOf(figures: readonly Figures[]): string[] {
  const middle = (of: (figures: Figures) => number): number => median(figures.map(of));
  return [
    perSecond(middle(({ enqueuePerS }) => enqueuePerS)),
    perSecond(middle(({ drainPerS }) => drainPerS[100] ?? Number.NaN)),
    `${digits(middle(({ idleMs }) => idleMs))} ms`,
    `${digits(middle(({ drainedIdleMs }) => drainedIdleMs))} ms`,
    `${Math.round(middle(({ rssMb }) => rssMb))} MB`,
  ];
}
