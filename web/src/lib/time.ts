/** Formatting of times and durations. Arguments are in milliseconds unless their name says seconds. */

/** Format a duration in one unit, as the `wqlab` command does: `40 s`, `6 min`, `3 h`, `5 d`. */
export function roughDuration(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129_600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

/** Format a time relative to `now`: `just now`, `6 min ago`, `in 3 h`; the date from 30 days on. */
export function relative(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (Math.abs(seconds) < 5) return "just now";
  if (Math.abs(seconds) >= 30 * 86_400) return date(at);
  return seconds > 0 ? `${roughDuration(seconds)} ago` : `in ${roughDuration(-seconds)}`;
}

/** Format a date in the browser's time zone: `2026-11-21`. */
export function date(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** Return the midnight, in local time, at which a day such as `2026-11-21` begins. */
export function startOfDay(day: string): Date {
  return new Date(`${day}T00:00:00`);
}

/** Return the midnight after `day`, correct across daylight-saving changes. */
export function dayAfter(day: string): Date {
  const midnight = startOfDay(day);
  midnight.setDate(midnight.getDate() + 1);
  return midnight;
}

/** Format a time with its zone: `2026-11-21 18:02:11 +01:00`. */
export function absolute(at: Date): string {
  const offset = -at.getTimezoneOffset();
  const size = Math.abs(offset);
  const zone =
    offset === 0 ? "UTC" : `${offset < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
  return `${date(at)} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${zone}`;
}

/** Format a duration as `0:07`, `12:30` or `1:02:03`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** Return after how many milliseconds the text of `relative` can change. */
export function msUntilTextChange(at: Date, now: Date): number {
  const seconds = Math.abs(now.getTime() - at.getTime()) / 1000;
  if (seconds < 90) return 1000;
  if (seconds < 5400) return 15_000;
  return 300_000;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
