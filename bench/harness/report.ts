// What a benchmark says, printed line by line as it is measured.
import { compare } from "./compare.ts";
import type { Load } from "./load.ts";
import { median, quantile } from "./median.ts";
import { digits, perSecond } from "./table.ts";

export type Report = {
  /** Measures `ours` against each reference and prints a line for each pair. */
  compare(what: string, ours: Load, references: readonly Reference[]): Promise<void>;
  /** Prints rates per second that were measured in rounds. A ratio above one says that ours is faster. */
  rates(what: string, rounds: Rounds & { readonly goalMin?: number }): void;
  /** Prints milliseconds that were measured in rounds. The goal is the greatest median, or the greatest ratio. */
  waits(what: string, rounds: Rounds & { readonly goalMsMax?: number; readonly goalMax?: number }): void;
  /** Prints microseconds per operation that were measured in rounds. A ratio above one says that ours is dearer. */
  costs(what: string, rounds: Rounds & { readonly goalMax?: number }): void;
  /** Prints the median and the 99th percentile of times in milliseconds. */
  times(what: string, samplesMs: readonly number[], options?: TimesOptions): void;
  /** Prints a size in megabytes, and whether it is within its goal. */
  size(what: string, size: { readonly mb: number; readonly goalMbMax: number }): void;
  /** A line between the figures: what was left out, and why. */
  note(text: string): void;
};

/** One figure for each round. */
export type Rounds = { readonly ours: readonly number[]; readonly reference?: readonly number[] };

export type Reference = {
  readonly what: string;
  readonly load: Load;
  /** The least ratio that the issue asks for. */
  readonly goalMin?: number;
};

export type TimesOptions = {
  /** The greatest median that the issue asks for. */
  readonly goalMsMax?: number;
  /** Times of the same thing without Daybook, for comparison. */
  readonly referenceMs?: readonly number[];
  /** The least ratio to the reference that the issue asks for: the median of the rounds. */
  readonly goalMin?: number;
};

/** How many goals were met and missed. */
export type Verdict = { met: number; missed: number };

export function createReport(verdict: Verdict): Report {
  printRow(["", "ours", "reference", "ratio", "(rounds)", "goal", ""]);

  function judge(met: boolean, missed: string): string {
    if (met) verdict.met++;
    else verdict.missed++;
    return met ? "met" : missed;
  }

  return {
    async compare(what, ours, references) {
      const found = await compare(
        ours,
        references.map(({ load }) => load),
      );
      found.forEach((each, index) => {
        const { what: other, goalMin } = references[index] as Reference;
        printRow([
          `${what} ÷ ${other}`,
          perSecond(each.ours),
          perSecond(each.reference),
          `${digits(each.ratio)}×`,
          `${digits(each.spread[0])}–${digits(each.spread[1])}`,
          goalMin === undefined ? "" : `≥ ${goalMin}×`,
          goalMin === undefined ? "" : judge(each.ratio >= goalMin, "below goal"),
        ]);
      });
    },
    rates(what, { goalMin, ...rounds }) {
      const ratio = ratioOf(rounds);
      const judged = goalMin === undefined ? [] : [`≥ ${goalMin}×`, judge(ratio >= goalMin, "below goal")];
      printRow([what, ...cellsOf(rounds, perSecond), ...judged]);
    },
    waits(what, { goalMsMax, goalMax, ...rounds }) {
      const judged: string[] = [];
      if (goalMsMax !== undefined)
        judged.push(`≤ ${goalMsMax} ms`, judge(median(rounds.ours) <= goalMsMax, "above goal"));
      else if (goalMax !== undefined) judged.push(`≤ ${goalMax}×`, judge(ratioOf(rounds) <= goalMax, "above goal"));
      printRow([what, ...cellsOf(rounds, (ms) => `${digits(ms)} ms`), ...judged]);
    },
    costs(what, { goalMax, ...rounds }) {
      const judged = goalMax === undefined ? [] : [`≤ ${goalMax}×`, judge(ratioOf(rounds) <= goalMax, "above goal")];
      printRow([what, ...cellsOf(rounds, (us) => `${digits(us)} µs`), ...judged]);
    },
    times(what, samplesMs, { goalMsMax, referenceMs, goalMin } = {}) {
      const ms = median(samplesMs);
      const ratio = referenceMs && median(referenceMs.map((each, round) => each / (samplesMs[round] ?? ms)));
      const byRatio = goalMin !== undefined && ratio !== undefined;
      printRow([
        what,
        `${digits(ms)} ms`,
        referenceMs === undefined ? "" : `${digits(median(referenceMs))} ms`,
        byRatio ? `${digits(ratio)}×` : "",
        `p99 ${digits(quantile(samplesMs, 0.99))}`,
        byRatio ? `≥ ${goalMin}×` : goalMsMax === undefined ? "" : `≤ ${goalMsMax} ms`,
        byRatio
          ? judge(ratio >= goalMin, "below goal")
          : goalMsMax === undefined
            ? ""
            : judge(ms <= goalMsMax, "above goal"),
      ]);
    },
    size(what, { mb, goalMbMax }) {
      const judged = [`≤ ${goalMbMax} MB`, judge(mb <= goalMbMax, "above goal")];
      printRow([what, `${digits(mb)} MB`, "", "", "", ...judged]);
    },
    note: (text) => console.log(`  ${text}`),
  };
}

function ratioOf(rounds: Rounds): number {
  return median(ratiosOf(rounds));
}

function ratiosOf({ ours, reference }: Rounds): number[] {
  return reference === undefined ? [] : ours.map((each, round) => each / (reference[round] ?? Number.NaN));
}

/** Ours, the reference, the ratio, the least and the greatest ratio. */
function cellsOf(rounds: Rounds, write: (figure: number) => string): string[] {
  const { ours, reference } = rounds;
  if (reference === undefined) return [write(median(ours)), "", "", ""];
  const ratios = ratiosOf(rounds);
  const spread = `${digits(Math.min(...ratios))}–${digits(Math.max(...ratios))}`;
  return [write(median(ours)), write(median(reference)), `${digits(median(ratios))}×`, spread];
}

const widths = [71, 11, 11, 7, 11, 8, 0];

function printRow(cells: readonly string[]): void {
  const padded = cells.map((cell, index) => {
    const width = widths[index] ?? 0;
    return index === 0 || width === 0 ? cell.padEnd(width) : cell.padStart(width);
  });
  console.log(`  ${padded.join("  ").trimEnd()}`);
}
