/** Table with sorting, copy as text and virtual rows. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { textTable, toAscii } from "@/lib/texttable";
import { CopyButton } from "./CopyButton";
import classes from "./DataTable.module.css";
import { RelativeTime } from "./RelativeTime";
import { Scroll } from "./Scroll";

export interface Column<Row> {
  id: string;
  header: string;
  /** Tooltip of the header. */
  hint?: string;
  /** Value to sort by, also shown and copied unless `cell` or `text` is given. Null sorts last in both directions. */
  value(row: Row): string | number | null | undefined;
  /** Text to copy. */
  text?(row: Row): string;
  /** Content to show. */
  cell?(row: Row): ReactNode;
  /** The value is a time, shown relative to now. A text is shown where there is none, instead of "never". */
  time?: true | string;
  /** Align right, with tabular digits. */
  numeric?: boolean;
  sortable?: boolean;
  /** The row's header cell: at most one column. Its text may wrap. */
  rowHeader?: boolean;
  /** Allow the text of other cells to wrap. */
  wrap?: boolean;
  /** Hide the header in stacked rows, and everywhere if the column is not sortable. */
  bare?: boolean;
}

export interface Sort {
  id: string;
  desc: boolean;
}

interface DataTableProps<Row> {
  /** Accessible name; shown above the table unless `captionHidden`. */
  caption: string;
  captionHidden?: boolean;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey(row: Row): string | number;
  initialSort?: Sort;
  /** Sort order controlled by the page (with `onSort`), for example in its URL. */
  sort?: Sort | null;
  onSort?(sort: Sort | null): void;
  /** Keep the server's order; headers do not sort. */
  fixedOrder?: boolean;
  /** Shown if there are no rows. */
  empty?: ReactNode;
  /** Value of the row's `data-mark` attribute, for the page's CSS. */
  mark?(row: Row): string | undefined;
  /** On narrow screens: scroll sideways, or stack each row as a block of header and value pairs. */
  narrow?: "scroll" | "stack";
  /** Height of the scrolling area of a virtual table. */
  maxHeight?: string;
  copyable?: boolean;
  actions?: ReactNode;
}

/** From this number of rows on, only visible rows are in the document. */
const VIRTUAL_MIN_ROWS = 150;
const ROW_PX = 28;

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const {
    caption,
    captionHidden,
    columns,
    rows,
    rowKey,
    fixedOrder = false,
    empty,
    mark,
    copyable = true,
    actions,
  } = props;
  const id = useId();
  const [ownSort, setOwnSort] = useState<Sort | null>(props.initialSort ?? null);
  const sort = props.onSort ? (props.sort ?? null) : ownSort;
  const setSort = props.onSort ?? setOwnSort;
  const ordered = useSorted(rows, columns, fixedOrder ? null : sort);

  const scroller = useRef<HTMLDivElement>(null);
  const printing = usePrinting();
  const virtual = ordered.length >= VIRTUAL_MIN_ROWS && !printing;
  const virtualizer = useVirtualizer({
    count: virtual ? ordered.length : 0,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const widths = useMemo(() => (virtual ? columnWidths(columns, rows) : null), [virtual, columns, rows]);

  const items = virtual ? virtualizer.getVirtualItems() : null;
  const before = items?.[0]?.start ?? 0;
  const after = items ? virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0) : 0;
  const shown = items
    ? items.map(item => ({ row: ordered[item.index] as Row, at: item.index }))
    : ordered.map((row, at) => ({ row, at }));

  const copied = () =>
    textTable(
      columns.map(column => column.header),
      ordered.map(row => columns.map(column => toAscii(textOf(column, row)))),
      columns.map(column => column.numeric ?? false),
    );

  return (
    <div className={classes.whole}>
      {(!captionHidden || copyable || actions) && (
        <div className={classes.head}>
          <span className={captionHidden ? "hidden-visually" : classes.caption} id={id}>
            {caption}
          </span>
          <span className={`${classes.tools} no-print`}>
            {actions}
            {copyable && rows.length > 0 && (
              <CopyButton label="Copy as text" name={`Copy as text: ${caption}`} text={copied} />
            )}
          </span>
        </div>
      )}
      <Scroll
        name={caption}
        className={classes.scroller}
        ref={scroller}
        // Layout containment: rows added and removed while scrolling do not affect the layout of the page.
        style={virtual ? { maxHeight: props.maxHeight ?? "36rem", contain: "content" } : undefined}
      >
        <table
          className={classes.table}
          data-virtual={virtual || undefined}
          data-narrow={props.narrow}
          aria-rowcount={virtual ? ordered.length + 1 : undefined}
        >
          <caption className="hidden-visually">{caption}</caption>
          {widths && (
            <colgroup>
              {widths.map((width, at) => (
                <col key={columns[at]?.id} style={{ width: `calc(${width}ch + 1.75rem)` }} />
              ))}
            </colgroup>
          )}
          <thead>
            <tr aria-rowindex={virtual ? 1 : undefined}>
              {columns.map(column => (
                <HeaderCell
                  key={column.id}
                  column={column}
                  sort={sort?.id === column.id ? sort : null}
                  onSort={fixedOrder || column.sortable === false ? undefined : setSort}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {before > 0 && <Spacer height={before} columns={columns.length} />}
            {shown.map(({ row, at }) => (
              <BodyRow
                key={rowKey(row)}
                row={row}
                columns={columns}
                rowIndex={virtual ? at + 2 : undefined}
                mark={mark?.(row)}
              />
            ))}
            {after > 0 && <Spacer height={after} columns={columns.length} />}
            {rows.length === 0 && (
              <tr>
                <td colSpan={columns.length} className={classes.empty}>
                  {empty ?? "No entries."}
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </Scroll>
    </div>
  );
}

interface BodyRowProps<Row> {
  row: Row;
  columns: readonly Column<Row>[];
  rowIndex: number | undefined;
  mark: string | undefined;
}

/** Return what a cell shows; null if it has nothing to show. */
function contentOf<Row>(column: Column<Row>, row: Row): ReactNode {
  if (column.time)
    return (
      <RelativeTime
        at={column.value(row) as string | null}
        {...(column.time !== true && { absent: column.time })}
      />
    );
  const content = column.cell ? column.cell(row) : textOf(column, row);
  return content === "" ? null : content;
}

/** Memoized, so that visible rows are not rendered again while scrolling; needs a stable `columns` array. */
const BodyRow = memo(function BodyRow<Row>({ row, columns, rowIndex, mark }: BodyRowProps<Row>) {
  return (
    <tr aria-rowindex={rowIndex} data-mark={mark}>
      {columns.map(column => {
        const content = contentOf(column, row);
        return column.rowHeader ? (
          <th key={column.id} scope="row" className={column.numeric ? classes.numeric : undefined}>
            {content ?? <span className="muted">–</span>}
          </th>
        ) : (
          <td
            data-header={column.bare ? undefined : column.header}
            data-none={content == null || undefined}
            key={column.id}
            className={column.numeric ? classes.numeric : column.wrap ? classes.wrap : undefined}
          >
            {content ?? <span className="muted">–</span>}
          </td>
        );
      })}
    </tr>
  );
}) as <Row>(props: BodyRowProps<Row> & { key?: string | number }) => ReactNode;

/** Sort the rows, those without a value last. */
function useSorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: Sort | null) {
  return useMemo(() => {
    const column = columns.find(each => each.id === sort?.id);
    if (!column || !sort) return rows;
    return rows
      .map(row => ({ row, value: column.value(row) }))
      .toSorted(({ value: a }, { value: b }) => {
        if (a == null || b == null) return Number(a == null) - Number(b == null);
        const order =
          typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
        return sort.desc ? -order : order;
      })
      .map(each => each.row);
  }, [rows, columns, sort]);
}

interface HeaderCellProps<Row> {
  column: Column<Row>;
  sort: Sort | null;
  onSort?: ((sort: Sort | null) => void) | undefined;
}

function HeaderCell<Row>({ column, sort, onSort }: HeaderCellProps<Row>) {
  const direction = sort === null ? undefined : sort.desc ? "descending" : "ascending";
  // Numbers sort descending first; a third click restores the default order.
  const first = column.numeric ?? false;
  const next =
    sort === null
      ? { id: column.id, desc: first }
      : sort.desc === first
        ? { id: column.id, desc: !first }
        : null;
  return (
    <th
      scope="col"
      aria-sort={direction}
      className={column.numeric ? classes.numeric : undefined}
      title={column.hint}
    >
      {onSort ? (
        <button type="button" className={classes.sorter} onClick={() => onSort(next)}>
          {column.header}
          <span className={classes.arrow} aria-hidden="true">
            {sort === null ? "" : sort.desc ? "▾" : "▴"}
          </span>
        </button>
      ) : (
        <span className={column.bare && column.sortable === false ? "hidden-visually" : undefined}>
          {column.header}
        </span>
      )}
    </th>
  );
}

function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a table row is not focusable
    <tr aria-hidden="true" className={classes.spacer}>
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}

function textOf<Row>(column: Column<Row>, row: Row): string {
  if (column.text) return column.text(row);
  const value = column.value(row);
  return value == null ? "" : String(value);
}

/** Column widths in characters over all rows, not only visible ones, so that columns do not move while scrolling. */
function columnWidths<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): number[] {
  return columns.map(column => {
    const longest = rows.reduce(
      (most, row) => Math.max(most, textOf(column, row).length),
      column.header.length + 2,
    );
    return Math.min(48, longest);
  });
}

/** Return true while the page is being printed, when all rows must be rendered. */
function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const begin = () => flushSync(() => setPrinting(true));
    const end = () => setPrinting(false);
    window.addEventListener("beforeprint", begin);
    window.addEventListener("afterprint", end);
    return () => {
      window.removeEventListener("beforeprint", begin);
      window.removeEventListener("afterprint", end);
    };
  }, []);
  return printing;
}
