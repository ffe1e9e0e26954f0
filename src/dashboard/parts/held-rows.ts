// Rows that keep still. While a reader points at a list, chooses in it or has the keyboard in it, what is new waits beside it and is
// counted; what is shown already is brought up to date where it stands.
import { useRef, useState } from "preact/hooks";

export type Held<Row> = {
  readonly rows: readonly Row[];
  /** New ones that wait. */
  readonly waiting: number;
  show(): void;
};

/** What the reader did themselves is shown at once: `fresh` is another value then. */
export function useHeldRows<Row>(
  latest: readonly Row[],
  { isHeld, idOf, fresh }: { isHeld: boolean; idOf: (row: Row) => string; fresh: unknown },
): Held<Row> {
  const shown = useRef<readonly Row[]>([]);
  const freshBefore = useRef(fresh);
  const [, render] = useState(0);
  // Until another answer is there, the rows are still those of what was asked before.
  const awaited = useRef<readonly Row[] | undefined>(undefined);
  if (freshBefore.current !== fresh) awaited.current = latest;
  const isFresh = awaited.current !== undefined;
  if (isFresh && !isSame(awaited.current ?? [], latest)) awaited.current = undefined;
  freshBefore.current = fresh;
  if (!isHeld || isFresh || shown.current.length === 0) {
    shown.current = latest;
    return { rows: latest, waiting: 0, show: () => undefined };
  }
  const byId = new Map(latest.map((row) => [idOf(row), row]));
  const rows = shown.current.map((row) => byId.get(idOf(row)) ?? row);
  const before = new Set(rows.map(idOf));
  shown.current = rows;
  return {
    rows,
    waiting: latest.filter((row) => !before.has(idOf(row))).length,
    show() {
      shown.current = latest;
      render((count) => count + 1);
    },
  };
}

function isSame<Row>(before: readonly Row[], after: readonly Row[]): boolean {
  return before.length === after.length && before.every((row, index) => row === after[index]);
}
