export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which `share` of the values lie; between two neighbours, their weighted mean. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const [low = Number.NaN, high = low] = sorted.slice(Math.floor(at), Math.floor(at) + 2);
  return low + (high - low) * (at - Math.floor(at));
}
