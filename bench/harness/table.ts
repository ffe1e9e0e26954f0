/** Prints rows as wide as their longest cells: the first column to the left, the others to the right. */
export function printTable(rows: readonly (readonly string[])[]): void {
  const widths = rows.reduce<number[]>(
    (most, row) => row.map((cell, index) => Math.max(most[index] ?? 0, cell.length)),
    [],
  );
  for (const row of rows) {
    const cells = row.map((cell, index) =>
      index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0),
    );
    console.log(`  ${cells.join("   ").trimEnd()}`);
  }
}

// More digits than these a shared machine cannot repeat; below ten, two decimals show on which side of a goal it is.
export function digits(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

export function perSecond(rate: number): string {
  return `${new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(rate)}/s`;
}
