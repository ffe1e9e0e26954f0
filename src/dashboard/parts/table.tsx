// A table of things: by mouse, by keyboard (j k move, Enter opens, x selects) and by reader of screens. Above two hundred rows only
// those in sight are in the page.
import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { useHeldRows } from "./held-rows.ts";
import { Icon } from "./icon.tsx";
import { useReorder, type Reorder } from "./reorder.ts";

export type Column<Row> = {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** As `grid-template-columns` takes it; default "minmax(0, 1fr)". */
  readonly width?: string;
  readonly align?: "right";
  /** Left out on a narrow screen. */
  readonly minor?: boolean;
};

export type TableProps<Row> = {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly idOf: (row: Row) => string;
  /** Where a row leads. */
  readonly hrefOf?: (row: Row) => string | undefined;
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (ids: ReadonlySet<string>) => void;
  /** What stands where there are no rows. */
  readonly empty?: ComponentChildren;
  /** Reads further rows; without it there are none. */
  readonly onMore?: (() => void) | undefined;
  readonly isReading?: boolean;
  /** Another value after something that the reader did here: the order is shown as it is now. */
  readonly fresh?: unknown;
  /** New rows appear as they come, also under the pointer. */
  readonly restless?: boolean;
  /** Rows can be given another place. */
  readonly reorder?: Reorder<Row> | undefined;
};

const virtualFrom = 200;
const rowPx = 36;

export function Table<Row>(props: TableProps<Row>) {
  const {
    label,
    columns,
    idOf,
    hrefOf,
    selected,
    onSelect,
    empty,
    onMore,
    isReading = false,
    restless = false,
  } = props;
  const [isPointed, setPointed] = useState(false);
  const body = useRef<HTMLDivElement>(null);
  const hasChosen = (selected?.size ?? 0) > 0;
  const { rows, waiting, show } = useHeldRows(props.rows, {
    isHeld: !restless && (isPointed || hasChosen),
    idOf,
    fresh: props.fresh,
  });
  const movable = useReorder(rows, idOf, props.reorder);
  const template = [
    ...(onSelect === undefined ? [] : ["28px"]),
    ...columns.map(({ width = "minmax(0, 1fr)" }) => width),
  ].join(" ");
  const span = useSpan(rows.length, body);

  if (rows.length === 0 && !isReading) return <>{empty ?? <p class="empty-line">Nothing here.</p>}</>;

  function toggle(id: string): void {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onSelect?.(next);
  }

  const isAll = rows.length > 0 && rows.every((row) => selected?.has(idOf(row)) === true);
  return (
    <div
      class="table-wrap"
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onFocusIn={() => setPointed(true)}
      onFocusOut={() => setPointed(false)}
    >
      {waiting === 0 ? null : (
        <button type="button" class="waiting" onClick={show}>
          <Icon name="up" size={12} /> {`${waiting} new, show`}
        </button>
      )}
      <div
        class="table"
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-busy={isReading}
        style={{ "--columns": template }}
      >
        <div role="rowgroup" class="table-head">
          <div role="row" class="table-row">
            {onSelect === undefined ? null : (
              <span role="columnheader">
                <input
                  type="checkbox"
                  aria-label="Select all that are shown"
                  checked={isAll}
                  onChange={() => onSelect(isAll ? new Set() : new Set(rows.map(idOf)))}
                />
              </span>
            )}
            {columns.map(({ head, align, minor }) => (
              <span key={head} role="columnheader" class={classOf(align, minor)}>
                {head}
              </span>
            ))}
          </div>
        </div>
        <div role="rowgroup" ref={body} class={`table-body${span.isVirtual ? " virtual" : ""}`}>
          <div style={span.isVirtual ? { height: `${span.totalPx}px`, paddingTop: `${span.beforePx}px` } : {}}>
            {rows.slice(span.from, span.to).map((row, index) => {
              const id = idOf(row);
              const link = hrefOf?.(row);
              return (
                <div
                  key={id}
                  role="row"
                  class={`table-row${selected?.has(id) === true ? " selected" : ""}`}
                  data-row={id}
                  {...movable(row)}
                  aria-rowindex={span.from + index + 2}
                  aria-selected={onSelect === undefined ? undefined : selected?.has(id) === true}
                >
                  {onSelect === undefined ? null : (
                    <span role="cell">
                      <input
                        type="checkbox"
                        aria-label={`Select ${id}`}
                        checked={selected?.has(id) === true}
                        onChange={() => toggle(id)}
                      />
                    </span>
                  )}
                  {columns.map(({ head, cell, align, minor }, at) => (
                    <span key={head} role="cell" class={classOf(align, minor)} data-head={head}>
                      {at === 0 && link !== undefined ? (
                        <a class="row-link" href={link}>
                          {cell(row)}
                        </a>
                      ) : (
                        cell(row)
                      )}
                    </span>
                  ))}
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {onMore === undefined ? null : (
        <div class="table-more">
          <Button onPress={onMore} whyNot={isReading ? "They are being read" : undefined}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

function classOf(align: "right" | undefined, minor: boolean | undefined): string {
  return `cell${align === "right" ? " num" : ""}${minor === true ? " minor" : ""}`;
}

type Span = {
  readonly isVirtual: boolean;
  readonly from: number;
  readonly to: number;
  readonly beforePx: number;
  readonly totalPx: number;
};

/** Which of so many rows are in the page. */
function useSpan(count: number, scroller: { readonly current: HTMLDivElement | null }): Span {
  const [, render] = useState(0);
  const made = useRef<Virtualizer<HTMLDivElement, Element> | undefined>(undefined);
  const isVirtual = count > virtualFrom;
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => render((each) => each + 1),
  };
  if (isVirtual) {
    made.current ??= new Virtualizer<HTMLDivElement, Element>(options);
    made.current.setOptions(options);
  }
  useEffect(() => {
    if (!isVirtual) return undefined;
    const end = made.current?._didMount();
    made.current?._willUpdate();
    render((each) => each + 1);
    return end;
  }, [isVirtual]);
  if (!isVirtual) return { isVirtual, from: 0, to: count, beforePx: 0, totalPx: 0 };
  const items = made.current?.getVirtualItems() ?? [];
  const first = items[0];
  const last = items.at(-1);
  return {
    isVirtual,
    from: first?.index ?? 0,
    to: (last?.index ?? 40) + 1,
    beforePx: first?.start ?? 0,
    totalPx: made.current?.getTotalSize() ?? count * rowPx,
  };
}
