/** Where things are on an axis of time. Pure; times in ms since the epoch, places in percent of the axis. */

const STEPS_MIN = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 10_080];

export interface Tick {
  at: number;
  left: number;
  /** `18:00`; at midnight the day, `11-21`. */
  label: string;
}

/** Round times of the reader's own clock, `most` at most; they stay round where the clocks change in between. */
export function ticksOf(since: number, until: number, most: number): Tick[] {
  const minutes = (until - since) / 60_000;
  const step = STEPS_MIN.find(each => minutes / each <= most) ?? Math.ceil(minutes / most / 1440) * 1440;
  const first = new Date(since);
  const ticks: Tick[] = [];
  for (let many = 0; ; many += 1) {
    const time = new Date(first.getFullYear(), first.getMonth(), first.getDate(), 0, many * step);
    const at = time.getTime();
    if (at > until) return ticks;
    if (at >= since) ticks.push({ at, left: placeOf(at, since, until), label: labelOf(time) });
  }
}

export interface Place {
  left: number;
  width: number;
}

/** The part of a span that the axis shows; what has not ended goes on to `now`. Null when that is none. */
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

export function placeOf(at: number, since: number, until: number): number {
  return (100 * (at - since)) / (until - since);
}

/** A digit of the smallest text, the room beside a text in a bar, and what a sign above a bar takes; all in px. */
const DIGIT_PX = 7.5;
const BESIDE_PX = 8;
const SIGN_PX = 14;

/** Whether a text stands in a bar, on a track so many pixels wide. */
export function fits(text: string, { width }: Place, track: number): boolean {
  return (width * track) / 100 >= text.length * DIGIT_PX + BESIDE_PX;
}

export interface Sign {
  left: number;
  text: string;
}

/**
 * Signs for bars that have no room for theirs. Where two would touch, the weightier one stands for both: it is the last
 * of `weights` that they have.
 */
export function signsAbove(signs: readonly Sign[], track: number, weights: string): Sign[] {
  const apart = track > 0 ? (100 * SIGN_PX) / track : 100;
  const shown: Sign[] = [];
  for (const { left, text } of signs.toSorted((a, b) => a.left - b.left)) {
    const last = shown.at(-1);
    if (!last || left - last.left >= apart) shown.push({ left, text });
    else if (weights.indexOf(text) > weights.indexOf(last.text)) last.text = text;
  }
  return shown;
}

/**
 * A device's name, cut where it begins to tell the device from its siblings: `two-socket-xeon`, `-2`. The second part is
 * short and stays whole wherever the first is shortened.
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
