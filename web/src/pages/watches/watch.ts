/** A watch in words: what it takes, and whether it works. */
import type { ListWatch, QuietHours, TreeWatch, WatchView } from "@/api/types";
import { roughDuration } from "@/lib/time";
import { oneLine, type Tone } from "@/lib/words";

export type WatchSpec = ListWatch | TreeWatch;

/**
 * What a watch takes: `kernel/workqueue.c, "flush", @example.org, if asked`, or the branches and tags of a tree. At most
 * `listed` of them are named.
 */
export function takesText(spec: WatchSpec, listed = Number.POSITIVE_INFINITY): string {
  const wanted =
    spec.kind === "tree"
      ? [...(spec.branches ?? []), ...(spec.tags ?? [])]
      : [...(spec.paths ?? []), ...(spec.subjects ?? []).map(words => `"${words}"`), ...(spec.authors ?? [])];
  const named = wanted.slice(0, listed);
  const more = wanted.length - named.length;
  if (more > 0) named.push(`${more} more`);
  const asked = spec.kind === "list" && spec.only_if_asked ? ["if asked"] : [];
  return oneLine([named.join(", ") || "every series", ...asked].join(", "));
}

export function measuresText(spec: WatchSpec): string {
  const named = oneLine((spec.targets ?? []).join(", "));
  if (spec.kind === "tree" || !spec.what_it_touches) return named;
  return named ? `what it touches, of ${named}` : "what it touches";
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

/** Why a watch submits nothing at the moment; null if it works or is disabled without a problem. */
export function obstacle(view: WatchView, now: Date): Standing | null {
  const { spec, mailing_list: list, repository, problems } = view;
  if (problems.length > 0) return { tone: "bad", text: oneLine(problems.join("; ")) };
  if (view.enabled_at === null) return null;
  if (list?.failure) {
    const since = list.failing_since ? ` for ${elapsed(list.failing_since, now)}` : "";
    return { tone: "bad", text: `the list cannot be read${since}: ${oneLine(list.failure.summary)}` };
  }
  if (repository?.problem)
    return { tone: "bad", text: `the last look failed: ${oneLine(repository.problem)}` };
  if (list?.waiting_for_worker_since) {
    const since = elapsed(list.waiting_for_worker_since, now);
    return { tone: "unsure", text: `waits for a worker of the queue lists for ${since}` };
  }
  const until = quietUntil(spec.quiet_hours ?? [], now);
  if (until !== null) return { tone: "unsure", text: `quiet hours until ${until} UTC` };
  if (view.waiting_for) return { tone: "unsure", text: oneLine(view.waiting_for) };
  if (view.minutes_used >= (spec.minutes_a_day ?? 0))
    return { tone: "unsure", text: "the budget of 24 hours is used up" };
  return null;
}

/** `35 of 240 min`: what the watch has started in 24 hours. */
export function budgetText({ minutes_used, spec }: WatchView): string {
  return `${Math.round(minutes_used)} of ${spec.minutes_a_day} min`;
}

function elapsed(since: string, now: Date): string {
  return roughDuration((now.getTime() - Date.parse(since)) / 1000);
}
