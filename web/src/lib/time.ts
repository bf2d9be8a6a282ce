/** Times as text: how long ago, how long still, how long it took. All take milliseconds unless the name says seconds. */

/** `40 s`, `6 min`, `3 h`, `5 d`: one unit, as the `wqlab` command says it. */
export function rough(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129_600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

/** `just now`, `6 min ago`, `in 3 h`; from 30 days on the date itself, which says more. */
export function relative(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (Math.abs(seconds) < 5) return "just now";
  if (Math.abs(seconds) >= 30 * 86_400) return date(at);
  return seconds > 0 ? `${rough(seconds)} ago` : `in ${rough(-seconds)}`;
}

/** `2026-11-21`, in the reader's time zone. */
export function date(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** `2026-11-21 18:02:11 +01:00`: sorts, and says which zone. */
export function absolute(at: Date): string {
  const offset = -at.getTimezoneOffset();
  const size = Math.abs(offset);
  const zone =
    offset === 0 ? "UTC" : `${offset < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
  return `${date(at)} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${zone}`;
}

/** `0:07`, `12:30`, `1:02:03`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** How long until the text of `relative` can change, in ms: clocks on a page need not tick more often. */
export function nextChange(at: Date, now: Date): number {
  const seconds = Math.abs(now.getTime() - at.getTime()) / 1000;
  if (seconds < 90) return 1000;
  if (seconds < 5400) return 15_000;
  return 300_000;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
