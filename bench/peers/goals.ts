// The goals of Daybook beside its peers, as ratios of one run.
import type { Figures } from "../harness/measure-queue.ts";
import { median } from "../harness/median.ts";
import { digits } from "../harness/table.ts";
import type { SystemName } from "./systems.ts";

export type Measured = ReadonlyMap<SystemName, readonly Figures[]>;

type Goal = {
  readonly what: string;
  readonly ours: SystemName;
  readonly than?: SystemName;
  readonly of: (figures: Figures) => number;
} & ({ readonly min: number } | { readonly below: number });

const enqueue = { what: "enqueue, 100 in flight", of: (figures: Figures): number => figures.enqueuePerS };
const drain = { what: "drain at 100 places", of: (figures: Figures): number => figures.drainPerS[100] ?? Number.NaN };
const idle = { what: "p50 idle", of: (figures: Figures): number => figures.idleMs };

const goals: readonly Goal[] = [
  { ...drain, ours: "Daybook, SQLite", than: "graphile-worker", min: 1.3 },
  { ...enqueue, ours: "Daybook, SQLite", than: "BullMQ", min: 2.2 },
  { ...idle, ours: "Daybook, SQLite", below: 1 },
  { ...drain, ours: "Daybook, PostgreSQL", than: "graphile-worker", min: 0.75 },
  { ...drain, ours: "Daybook, PostgreSQL", than: "pg-boss", min: 1.5 },
  { ...enqueue, ours: "Daybook, PostgreSQL", than: "graphile-worker", min: 20 },
  { ...idle, ours: "Daybook, PostgreSQL", than: "graphile-worker", below: 1 },
  { ...idle, ours: "Daybook, PostgreSQL", than: "pg-boss", below: 1 },
];

/** A row for each goal: what, the median of the rounds' ratios, the least and the greatest, the goal, the verdict. */
export function judge(measured: Measured): string[][] {
  return goals.map((goal) => {
    const { what, ours, than, of } = goal;
    const title = than === undefined ? `${ours}: ${what}` : `${ours}: ${what} ÷ ${than}`;
    const asked = "min" in goal ? `≥ ${goal.min}×` : than === undefined ? `≤ ${goal.below} ms` : `< ${goal.below}×`;
    const ratios = compareRounds(measured.get(ours), than === undefined ? undefined : measured.get(than), of);
    if (than !== undefined && !measured.has(than)) return [title, "", "", asked, "not measured"];
    const ratio = median(ratios);
    const met = "min" in goal ? ratio >= goal.min : than === undefined ? ratio <= goal.below : ratio < goal.below;
    const unit = than === undefined ? " ms" : "×";
    const spread = `${digits(Math.min(...ratios))}–${digits(Math.max(...ratios))}`;
    return [title, `${digits(ratio)}${unit}`, spread, asked, met ? "met" : "missed"];
  });
}

function compareRounds(
  ours: readonly Figures[] = [],
  theirs: readonly Figures[] | undefined,
  of: Goal["of"],
): number[] {
  return ours.map((figures, round) => {
    const other = theirs?.[round];
    return of(figures) / (other === undefined ? 1 : of(other));
  });
}
