// Two programs on one machine, side by side. Absolute figures say more about the machine and its other guests than
// about the programs; the ratio of two measurements made within a second of each other says little about anything else.
import { measure, type Load } from "./load.ts";
import { median } from "./median.ts";

export type Comparison = {
  /** Operations per second, the median of all rounds. */
  readonly ours: number;
  readonly reference: number;
  /** The median of the ratios of each round, not the ratio of the medians. */
  readonly ratio: number;
  /** The least and the greatest ratio: how far to trust the median. */
  readonly spread: readonly [number, number];
};

// Many short rounds rather than a few long ones: a median shrugs off the rounds in which the disk or a neighbour
// stumbled, as long as they are fewer than half.
const rounds = 9;
const sliceMs = 220;
// Until the code that a second of work goes through is compiled: a server runs for longer.
const warmUpMs = 1000;

/** Measures `ours` against each reference in alternating slices. The order turns around each round, so that neither
 *  side always comes after the other. */
export async function compare(ours: Load, references: readonly Load[]): Promise<Comparison[]> {
  const sides = [ours, ...references];
  for (const side of sides) await measure(side, warmUpMs);
  const rates: number[][] = sides.map(() => []);
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? [...sides.keys()] : [...sides.keys()].toReversed();
    for (const index of order) rates[index]?.push(await measure(sides[index] as Load, sliceMs));
  }
  const [oursPerS = [], ...othersPerS] = rates;
  return othersPerS.map((perS) => {
    const ratios = oursPerS.map((rate, round) => rate / (perS[round] ?? Number.NaN));
    return {
      ours: median(oursPerS),
      reference: median(perS),
      ratio: median(ratios),
      spread: [Math.min(...ratios), Math.max(...ratios)],
    };
  });
}
