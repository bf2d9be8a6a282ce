/**
 * Mapping between lines of a log and rows of a terminal: a long line takes several rows. Rows are counted from the
 * nearer end of the buffer, and only from its end once the terminal has dropped its oldest rows.
 */

/** The part of xterm.js's buffer API in use. */
export interface Rows {
  readonly baseY: number;
  readonly cursorY: number;
  getLine(row: number): { readonly isWrapped: boolean } | undefined;
}

/** Return the last row written to. */
export function lastRow(buffer: Rows): number {
  return buffer.baseY + buffer.cursorY;
}

/** Return the line number (from 1) of a row. `lineFeeds` were written; `complete`: no row has been dropped. */
export function lineOfRow(buffer: Rows, row: number, lineFeeds: number, complete: boolean): number {
  const last = lastRow(buffer);
  if (row >= last) return lineFeeds + 1;
  if (complete && row < last / 2) {
    let line = 1;
    for (let each = 1; each <= row; each += 1) if (startsLine(buffer, each)) line += 1;
    return line;
  }
  let line = lineFeeds + 1;
  for (let each = last; each > row; each -= 1) if (startsLine(buffer, each)) line -= 1;
  return line;
}

/** Return the rows of a line; null if they were dropped or are not written yet. */
export function rowsOfLine(
  buffer: Rows,
  line: number,
  lineFeeds: number,
  complete: boolean,
): { first: number; count: number } | null {
  if (line > lineFeeds + 1 || line < 1) return null;
  const first = complete && line < lineFeeds / 2 ? fromStart(buffer, line) : fromEnd(buffer, line, lineFeeds);
  if (first === null) return null;
  let next = first + 1;
  while (next <= lastRow(buffer) && !startsLine(buffer, next)) next += 1;
  return { first, count: next - first };
}

function fromStart(buffer: Rows, line: number): number | null {
  let number = 0;
  for (let row = 0; row <= lastRow(buffer); row += 1) {
    if (startsLine(buffer, row)) number += 1;
    if (number === line) return row;
  }
  return null;
}

function fromEnd(buffer: Rows, line: number, lineFeeds: number): number | null {
  let number = lineFeeds + 2;
  for (let row = lastRow(buffer); row >= 0; row -= 1) {
    if (startsLine(buffer, row)) number -= 1;
    if (number === line) return row;
  }
  return null;
}

function startsLine(buffer: Rows, row: number): boolean {
  return !buffer.getLine(row)?.isWrapped;
}
