/** Geometry of the Gantt chart. Times are in ms since the epoch, positions in percent of the time axis. */

const STEPS_MIN = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 10_080];

export interface Tick {
  at: number;
  left: number;
  /** `18:00`, or the date (`11-21`) at midnight. */
  label: string;
}

/** Return at most `max` ticks at round local times, also across a daylight saving change. */
export function ticksOf(since: number, until: number, max: number): Tick[] {
  const minutes = (until - since) / 60_000;
  const step = STEPS_MIN.find(each => minutes / each <= max) ?? Math.ceil(minutes / max / 1440) * 1440;
  const first = new Date(since);
  const ticks: Tick[] = [];
  for (let index = 0; ; index += 1) {
    const time = new Date(first.getFullYear(), first.getMonth(), first.getDate(), 0, index * step);
    const at = time.getTime();
    if (at > until) return ticks;
    if (at >= since) ticks.push({ at, left: placeOf(at, since, until), label: labelOf(time) });
  }
}

export interface Place {
  left: number;
  width: number;
}

/** Return the visible part of a span, or null if it is outside the axis. A span without `end` lasts until `now`. */
export function spanOf(
  start: number,
  end: number | null,
  { since, until, now }: { since: number; until: number; now: number },
): Place | null {
  const from = Math.max(start, since);
  const to = Math.min(end ?? now, until);
  if (from > until || to < since || to < from) return null;
  const left = placeOf(from, since, until);
  return { left, width: placeOf(to, since, until) - left };
}

/** Return the position of a time on the axis. */
export function placeOf(at: number, since: number, until: number): number {
  return (100 * (at - since)) / (until - since);
}

/** Widths in px: a digit of the smallest text, the padding of text in a bar, and a sign above a bar. */
const DIGIT_PX = 7.5;
const PADDING_PX = 8;
const SIGN_PX = 14;

/** Return true if a text fits into a bar on a track that is `track` px wide. */
export function fits(text: string, { width }: Place, track: number): boolean {
  return (width * track) / 100 >= text.length * DIGIT_PX + PADDING_PX;
}

export interface Sign {
  left: number;
  text: string;
}

/**
 * Return the signs to show above bars that are too small for them. Where two would overlap, only the one with the
 * higher priority is kept: the later one in `priorities`.
 */
export function signsAbove(signs: readonly Sign[], track: number, priorities: string): Sign[] {
  const minDistance = track > 0 ? (100 * SIGN_PX) / track : 100;
  const shown: Sign[] = [];
  for (const { left, text } of signs.toSorted((a, b) => a.left - b.left)) {
    const last = shown.at(-1);
    if (!last || left - last.left >= minDistance) shown.push({ left, text });
    else if (priorities.indexOf(text) > priorities.indexOf(last.text)) last.text = text;
  }
  return shown;
}

/**
 * Split a device's name into a stem and the suffix that distinguishes it from similar devices: `two-socket-xeon`, `-2`.
 * The stem may be truncated, the suffix is always shown.
 */
export function nameParts(name: string): [string, string] {
  const at = name.search(/[-_.:]?[^-_.:]{1,8}$/);
  return at < 0 ? [name, ""] : [name.slice(0, at), name.slice(at)];
}

function labelOf(time: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  if (time.getHours() === 0 && time.getMinutes() === 0)
    return `${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${two(time.getHours())}:${two(time.getMinutes())}`;
}
