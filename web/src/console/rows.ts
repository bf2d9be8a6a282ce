/**
 * Lines of a log and rows of a terminal: a long line takes several rows. Counted from the end of the buffer that is
 * nearer, since a terminal forgets its oldest rows but never its newest.
 */

/** What is needed of xterm.js's buffer. */
export interface Rows {
  readonly baseY: number;
  readonly cursorY: number;
  getLine(row: number): { readonly isWrapped: boolean } | undefined;
}

/** The last row that was written to. */
export function lastRow(buffer: Rows): number {
  return buffer.baseY + buffer.cursorY;
}

/** The number of the line, from 1, that a row belongs to; `fed` line feeds were written, `whole`: no row was forgotten. */
export function lineOfRow(buffer: Rows, row: number, fed: number, whole: boolean): number {
  const last = lastRow(buffer);
  if (row >= last) return fed + 1;
  if (whole && row < last / 2) {
    let line = 1;
    for (let each = 1; each <= row; each += 1) if (begins(buffer, each)) line += 1;
    return line;
  }
  let line = fed + 1;
  for (let each = last; each > row; each -= 1) if (begins(buffer, each)) line -= 1;
  return line;
}

/** Where a line is; null when it was forgotten or is not written yet. */
export function rowsOfLine(
  buffer: Rows,
  line: number,
  fed: number,
  whole: boolean,
): { first: number; count: number } | null {
  if (line > fed + 1 || line < 1) return null;
  const first = whole && line < fed / 2 ? fromStart(buffer, line) : fromEnd(buffer, line, fed);
  if (first === null) return null;
  let next = first + 1;
  while (next <= lastRow(buffer) && !begins(buffer, next)) next += 1;
  return { first, count: next - first };
}

function fromStart(buffer: Rows, line: number): number | null {
  let number = 0;
  for (let row = 0; row <= lastRow(buffer); row += 1) {
    if (begins(buffer, row)) number += 1;
    if (number === line) return row;
  }
  return null;
}

function fromEnd(buffer: Rows, line: number, fed: number): number | null {
  let number = fed + 2;
  for (let row = lastRow(buffer); row >= 0; row -= 1) {
    if (begins(buffer, row)) number -= 1;
    if (number === line) return row;
  }
  return null;
}

function begins(buffer: Rows, row: number): boolean {
  return !buffer.getLine(row)?.isWrapped;
}
