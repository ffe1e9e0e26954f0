// How long runs took, as counts in fixed buckets: each ends at twice the one before it. Counts of two minutes can be added,
// which percentiles cannot, so every span of time has its percentiles from the sum of its buckets.

/** The upper bounds in milliseconds; what took longer than the last is in a bucket of its own. */
export const durationBounds: readonly number[] = Array.from({ length: 23 }, (_, index) => 0.5 * 2 ** index);

export type BucketColumn = `took_${number}`;

/** The columns of `run_rollup` that hold the counts. */
export const bucketColumns: readonly BucketColumn[] = [...durationBounds, Infinity].map(
  (_, index): BucketColumn => `took_${index}`,
);

/** The duration that the share `p` of the runs did not exceed, as near as its bucket tells; null without runs. It lies in the
 *  same bucket as the true one, so it is less than twice and more than half of it. */
export function percentile(counts: readonly number[], maxMs: number, p: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(p * total));
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (before + count < rank) {
      before += count;
      continue;
    }
    const from = index === 0 ? 0 : (durationBounds[index - 1] ?? 0);
    const to = Math.max(from, Math.min(maxMs, durationBounds[index] ?? maxMs));
    return from + ((to - from) * (rank - before)) / count;
  }
  return maxMs;
}
