// What a book does by itself, in a process of its own, three rounds on each back end. When DAYBOOK_BESIDE names another
// checkout of Daybook, its book is measured by the same lines, turn by turn with ours.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { durablePostgres } from "../../test/support/postgres.ts";
import { measureQueue, sized, type Figures } from "../harness/measure-queue.ts";
import { describePostgres, withDatabase, withFile } from "../harness/place.ts";
import type { Report } from "../harness/report.ts";

const rounds = 3;
const places = [100, 10, 1];
const jobs = Number(process.env["DAYBOOK_BENCH_JOBS"] ?? 20_000);

type Place = <T>(work: (place: string) => Promise<T>) => Promise<T>;
type Measured = { readonly ours: Figures[]; readonly beside: Figures[] };

export async function measureFigures(report: Report): Promise<void> {
  const beside = process.env["DAYBOOK_BESIDE"];
  if (beside !== undefined && !existsSync(join(beside, "src/index.ts"))) {
    throw new Error(`DAYBOOK_BESIDE is ${beside}, which is not a checkout of Daybook: it has no src/index.ts`);
  }
  report.note(
    beside === undefined
      ? `${jobs} jobs, ${rounds} rounds; set DAYBOOK_BESIDE to the folder of another checkout to compare with it`
      : `${jobs} jobs, ${rounds} rounds; the reference is the checkout beside this one`,
  );
  report.note("SQLite, durability full");
  print(report, await measure(withFile, beside), { idleMsMax: 1 });
  const server = await durablePostgres();
  try {
    report.note(await describePostgres(server.url));
    print(report, await measure((work) => withDatabase(server.url, work), beside), {});
  } finally {
    await server.stop();
  }
}

async function measure(place: Place, beside: string | undefined): Promise<Measured> {
  const measured: Measured = { ours: [], beside: [] };
  const module = import.meta.resolve("./book.ts");
  const take = (checkout?: string): Promise<Figures> =>
    place((at) => measureQueue({ module, place: at, ...sized(jobs, places), ...(checkout ? { checkout } : {}) }));
  const sides = [async () => measured.ours.push(await take())];
  if (beside !== undefined) sides.push(async () => measured.beside.push(await take(beside)));
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side();
  }
  return measured;
}

function print(report: Report, { ours, beside }: Measured, { idleMsMax }: { idleMsMax?: number }): void {
  const both = (of: (figures: Figures) => number): { ours: number[]; reference?: number[] } =>
    beside.length === 0 ? { ours: ours.map(of) } : { ours: ours.map(of), reference: beside.map(of) };
  const goal = (min: number): { goalMin?: number } => (beside.length === 0 ? {} : { goalMin: min });
  report.rates("enqueue, 100 in flight", { ...both(({ enqueuePerS }) => enqueuePerS), ...goal(1.3) });
  for (const count of places) {
    report.rates(`full cycle, concurrency ${count}`, {
      ...both(({ drainPerS }) => drainPerS[count] ?? Number.NaN),
      ...(count === 100 ? goal(1.5) : {}),
    });
  }
  const most = idleMsMax === undefined ? {} : { goalMsMax: idleMsMax };
  const drained = sized(jobs, places).drains[0]?.jobs;
  report.waits("enqueue → handler start, idle, p50", { ...both(({ idleMs }) => idleMs), ...most });
  report.waits(`the same after a drain of ${drained}`, { ...both(({ drainedIdleMs }) => drainedIdleMs), ...most });
}
