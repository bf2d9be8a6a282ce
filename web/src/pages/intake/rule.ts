/** A rule in words: what it takes, and whether it works. */
import type { ListRule, QuietHours, RuleView } from "@/api/types";
import { roughDuration } from "@/lib/time";
import { oneLine, type Tone } from "@/lib/words";

/**
 * Which series a rule takes: `kernel/workqueue.c, "flush", @example.org, if asked`. At most `listed` of the files, words
 * and authors are named.
 */
export function takesText(rule: ListRule, listed = Number.POSITIVE_INFINITY): string {
  const wanted = [
    ...(rule.paths ?? []),
    ...(rule.subjects ?? []).map(words => `"${words}"`),
    ...(rule.authors ?? []),
  ];
  const named = wanted.slice(0, listed);
  const more = wanted.length - named.length;
  if (more > 0) named.push(`${more} more`);
  return oneLine(
    [named.join(", ") || "every series", ...(rule.only_if_asked ? ["if asked"] : [])].join(", "),
  );
}

/** `22:00`, of a time that the API writes as `22:00:00`. */
export function clockTime(time: string): string {
  return time.replace(/^(\d\d:\d\d):00(\.0+)?Z?$/, "$1");
}

/** `22:00 to 06:00, 12:00 to 13:00 UTC`; empty without quiet hours. */
export function quietText(hours: readonly QuietHours[]): string {
  const all = hours.map(({ begins, ends }) => `${clockTime(begins)} to ${clockTime(ends)}`).join(", ");
  return all && `${all} UTC`;
}

/** The end of the quiet hours that a time is in, `06:00`; null if it is in none. */
export function quietUntil(hours: readonly QuietHours[], at: Date): string | null {
  const now = at.toISOString().slice(11, 19);
  const found = hours.find(({ begins, ends }) =>
    begins < ends ? begins <= now && now < ends : now >= begins || now < ends,
  );
  return found ? clockTime(found.ends) : null;
}

export interface Standing {
  tone: Tone;
  text: string;
}

/** Why a rule takes nothing at the moment; null if it works or is switched off without a problem. */
export function obstacle(view: RuleView, now: Date): Standing | null {
  const { rule, watched, problems } = view;
  if (problems.length > 0) return { tone: "bad", text: oneLine(problems.join("; ")) };
  if (view.enabled_at === null) return null;
  if (watched?.failure) {
    const since = watched.failing_since ? ` for ${elapsed(watched.failing_since, now)}` : "";
    return { tone: "bad", text: `the list cannot be read${since}: ${oneLine(watched.failure.summary)}` };
  }
  if (watched?.waiting_for_worker_since) {
    const since = elapsed(watched.waiting_for_worker_since, now);
    return { tone: "unsure", text: `waits for a worker of the queue lists for ${since}` };
  }
  const until = quietUntil(rule.quiet_hours ?? [], now);
  if (until !== null) return { tone: "unsure", text: `quiet hours until ${until} UTC` };
  if (view.minutes_used >= (rule.minutes_a_day ?? 0))
    return { tone: "unsure", text: "the budget of 24 hours is used up" };
  return null;
}

/** `35 of 240 min`: what the rule has started in 24 hours. */
export function budgetText({ minutes_used, rule }: RuleView): string {
  return `${Math.round(minutes_used)} of ${rule.minutes_a_day} min`;
}

function elapsed(since: string, now: Date): string {
  return roughDuration((now.getTime() - Date.parse(since)) / 1000);
}
