/**
 * Which points of a line are shown, and which one is selected. The URL names heads, so that a link shows the same
 * points after the line has grown; pages compute with indices.
 */

/** Head ids. Null: all heads, none selected. */
export interface View {
  from: number | null;
  to: number | null;
  at: number | null;
}

/** Indices of points; `end` is after the last one. */
export interface Range {
  start: number;
  end: number;
}

export interface Shown {
  range: Range;
  /** Index of the selected point. */
  at: number | null;
}

/** Least number of points shown, if the line has as many. */
export const LEAST_SHOWN = 5;
const ZOOM_STEP = 2;

/** Return what a view shows of the heads, which are in ascending order. A view without a known head shows all. */
export function shownOf(heads: readonly number[], { from, to, at }: View): Shown {
  const start = from === null ? 0 : lowerBound(heads, from);
  const end = to === null ? heads.length : lowerBound(heads, to + 1);
  const range = end > start ? widened({ start, end }, heads.length) : { start: 0, end: heads.length };
  const index = at === null ? -1 : lowerBound(heads, at);
  return { range, at: index >= 0 && heads[index] === at ? index : null };
}

/** Return the view of what is shown; the whole range has no limits, so that it includes later heads. */
export function viewOf(heads: readonly number[], { range, at }: Shown): View {
  const whole = range.start <= 0 && range.end >= heads.length;
  return {
    from: whole ? null : (heads[range.start] ?? null),
    to: whole ? null : (heads[range.end - 1] ?? null),
    at: at === null ? null : (heads[at] ?? null),
  };
}

/** Return a range with at least LEAST_SHOWN of `total` points, inside of them. */
export function widened({ start, end }: Range, total: number): Range {
  const size = Math.min(total, Math.max(LEAST_SHOWN, end - start));
  const middle = (start + end - size) / 2;
  const first = Math.max(0, Math.min(total - size, Math.round(middle)));
  return { start: first, end: first + size };
}

/** Return a range that is `factor` times as long, with the point `around` in the same place of it. */
export function zoomed({ start, end }: Range, factor: number, around: number, total: number): Range {
  const size = Math.min(total, Math.max(Math.min(LEAST_SHOWN, total), Math.round((end - start) * factor)));
  const place = (around + 0.5 - start) / (end - start);
  const first = Math.max(0, Math.min(total - size, Math.round(around + 0.5 - place * size)));
  return { start: first, end: first + size };
}

/** Return a range moved by as little as shows the point. */
export function containing({ start, end }: Range, index: number, total: number): Range {
  const size = end - start;
  const first = index < start ? index : index >= end ? index - size + 1 : start;
  const inside = Math.max(0, Math.min(total - size, first));
  return { start: inside, end: inside + size };
}

/** Return what is shown with another selected point: the range is moved if the point is outside. */
export function selecting(range: Range, index: number, total: number): Shown {
  const inside = Math.max(0, Math.min(total - 1, index));
  return { range: containing(range, inside, total), at: inside };
}

/** What a key changes in a chart of `total` points; null if the chart has no use for it. */
export function pressed(key: string, shown: Shown, total: number): Shown | null {
  if (total === 0) return null;
  const { range, at } = shown;
  const size = range.end - range.start;
  const select = (index: number) => selecting(range, index, total);
  const around = at !== null && at >= range.start && at < range.end ? at : range.start + Math.floor(size / 2);
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return select(at === null ? range.start : at + 1);
    case "ArrowLeft":
    case "ArrowDown":
      return select(at === null ? range.end - 1 : at - 1);
    case "PageUp":
      return select((at ?? range.start) - Math.max(1, Math.floor(size / 2)));
    case "PageDown":
      return select((at ?? range.end - 1) + Math.max(1, Math.floor(size / 2)));
    case "Home":
      return select(0);
    case "End":
      return select(total - 1);
    case "+":
    case "=":
      return { range: zoomed(range, 1 / ZOOM_STEP, around, total), at };
    case "-":
      return { range: zoomed(range, ZOOM_STEP, around, total), at };
    case "Escape":
      // First all points, then no selection.
      if (size < total) return { range: { start: 0, end: total }, at };
      return at === null ? null : { range, at: null };
    default:
      return null;
  }
}

/** Return the index of the first of ascending numbers that is at least `value`. */
export function lowerBound(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
