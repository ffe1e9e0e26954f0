// Rows that can be given another place: dragged with the mouse, or moved by Alt and an arrow key.
import { useState } from "preact/hooks";
import { messageOf } from "./button.tsx";
import { tell } from "../state/toast.ts";

export type Place = { readonly before: string } | { readonly after: string };

export type Reorder<Row> = {
  /** Whether this one may stand right beside that one. */
  fits(row: Row, beside: Row): boolean;
  move(id: string, to: Place): Promise<void>;
};

type Over = { readonly id: string; readonly isAfter: boolean };

/** What a row needs for it. */
export function useReorder<Row>(
  rows: readonly Row[],
  idOf: (row: Row) => string,
  reorder: Reorder<Row> | undefined,
): (row: Row) => Record<string, unknown> {
  const [dragged, setDragged] = useState<Row | undefined>(undefined);
  const [over, setOver] = useState<Over | undefined>(undefined);
  if (reorder === undefined) return () => ({});

  function place(row: Row, beside: Row | undefined, isAfter: boolean): void {
    if (beside === undefined || idOf(beside) === idOf(row) || reorder?.fits(row, beside) !== true) return;
    const to = isAfter ? { after: idOf(beside) } : { before: idOf(beside) };
    reorder.move(idOf(row), to).catch((error: unknown) => tell(messageOf(error), { kind: "bad" }));
  }

  function end(): void {
    setDragged(undefined);
    setOver(undefined);
  }

  return (row) => ({
    draggable: true,
    "data-drop": over?.id === idOf(row) ? (over.isAfter ? "after" : "before") : undefined,
    onDragStart(event: DragEvent) {
      event.dataTransfer?.setData("text/plain", idOf(row));
      setDragged(row);
    },
    onDragOver(event: DragEvent) {
      if (dragged === undefined || !reorder.fits(dragged, row)) return;
      event.preventDefault();
      setOver({ id: idOf(row), isAfter: isBelowMiddle(event) });
    },
    onDrop(event: DragEvent) {
      event.preventDefault();
      if (dragged !== undefined) place(dragged, row, isBelowMiddle(event));
      end();
    },
    onDragEnd: end,
    onKeyDown(event: KeyboardEvent) {
      const step = event.key === "ArrowUp" ? -1 : event.key === "ArrowDown" ? 1 : 0;
      if (!event.altKey || step === 0) return;
      event.preventDefault();
      place(row, rows[rows.findIndex((each) => idOf(each) === idOf(row)) + step], step > 0);
    },
  });
}

function isBelowMiddle({ clientY, currentTarget }: DragEvent): boolean {
  const { top, height } = (currentTarget as Element).getBoundingClientRect();
  return clientY > top + height / 2;
}
