// The one table of all pages: it sorts by the columns that can, stacks its cells where the window is narrow, and of
// thousands of equally high rows keeps only those in sight in the document.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ask, route } from "../routing";

const ROW = 33;
const SPARE = 10;

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  number?: boolean;
  /** A text that may be long. */
  wide?: boolean;
  /** What rows are sorted by when the title is pressed. */
  by?: (row: T) => number | string;
}

interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T) => string;
  /** Rows in sight; only given where all rows are of one height. */
  inSight?: number;
  chosen?: (row: T) => boolean;
}

export function Table<T>(props: TableProps<T>) {
  const { label, columns, keyOf, inSight } = props;
  const top = useSignal(0);
  const rows = sorted(props.rows, columns, route.value.query.get("order") ?? "");
  const first = inSight ? Math.max(0, Math.floor(top.value / ROW) - SPARE) : 0;
  const shown = inSight ? rows.slice(first, first + inSight + 2 * SPARE) : rows;
  return (
    <div
      class={inSight ? "scroll virtual" : "scroll"}
      style={inSight ? { maxHeight: `${inSight * ROW + 56}px` } : {}}
      tabIndex={0}
      role="region"
      aria-label={label}
      onScroll={(event) => {
        top.value = event.currentTarget.scrollTop;
      }}
    >
      <table class={inSight ? "table" : "table stack"} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Title key={column.title} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} columns={columns.length} />
          {shown.map((row, number) => (
            <tr key={keyOf(row)} aria-rowindex={first + number + 2} class={props.chosen?.(row) ? "chosen" : ""}>
              {columns.map((column) => (
                <td key={column.title} class={kind(column)} data-title={column.title}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          <Gap rows={rows.length - first - shown.length} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

function kind<T>({ number, wide }: Column<T>): string {
  return number ? "number" : wide ? "wide" : "";
}

function Title<T>({ column }: { column: Column<T> }) {
  const order = route.value.query.get("order") ?? "";
  const up = order === column.title;
  const sort = up ? "ascending" : order === `-${column.title}` ? "descending" : "none";
  if (!column.by) return <th class={kind(column)}>{column.title}</th>;
  return (
    <th class={kind(column)} aria-sort={sort}>
      <button type="button" class="sorter" onClick={() => ask({ order: up ? `-${column.title}` : column.title })}>
        {column.title}
      </button>
    </th>
  );
}

/** The rows in the order that the address names: a column's title, with a minus from the highest down. */
export function sorted<T>(rows: T[], columns: Column<T>[], order: string): T[] {
  const down = order.startsWith("-");
  const by = columns.find((column) => column.title === (down ? order.slice(1) : order))?.by;
  if (!by) return rows;
  const compare = (a: number | string, b: number | string) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
  return [...rows].sort((a, b) => compare(by(a), by(b)) * (down ? -1 : 1));
}

function Gap({ rows, columns }: { rows: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW}px` }} />
    </tr>
  );
}
