/** The content of the form of a rule, and the rule that it stands for. */
import { ApiError } from "@/api/problem";
import type { ListRule, QuietHours } from "@/api/types";
import { toYaml } from "@/lib/yaml";
import { clockTime } from "./rule";

/** Lists are texts with one entry a line; numbers are texts as they are typed. */
export interface RuleDraft {
  name: string;
  summary: string;
  archive: string;
  tree: string;
  paths: string;
  subjects: string;
  authors: string;
  onlyIfAsked: boolean;
  targets: string;
  whatItTouches: boolean;
  owner: string;
  commanders: string;
  minutesADay: string;
  quietHours: QuietHours[];
}

export const NEW_RULE: RuleDraft = {
  name: "",
  summary: "",
  archive: "",
  tree: "",
  paths: "",
  subjects: "",
  authors: "",
  onlyIfAsked: true,
  targets: "",
  whatItTouches: false,
  owner: "",
  commanders: "",
  minutesADay: "240",
  quietHours: [],
};

export function draftOf(rule: ListRule): RuleDraft {
  return {
    name: rule.name,
    summary: rule.summary ?? "",
    archive: rule.archive,
    tree: rule.tree,
    paths: (rule.paths ?? []).join("\n"),
    subjects: (rule.subjects ?? []).join("\n"),
    authors: (rule.authors ?? []).join("\n"),
    onlyIfAsked: rule.only_if_asked ?? true,
    targets: (rule.targets ?? []).join("\n"),
    whatItTouches: rule.what_it_touches ?? false,
    owner: rule.owner,
    commanders: (rule.commanders ?? []).join("\n"),
    minutesADay: String(rule.minutes_a_day),
    quietHours: shortHours(rule.quiet_hours),
  };
}

/** `enabled`: whether the rule is switched on, which the form does not change. */
export function ruleOf(draft: RuleDraft, enabled: boolean): Required<ListRule> {
  return {
    name: draft.name.trim(),
    summary: draft.summary.trim(),
    archive: draft.archive,
    enabled,
    paths: linesOf(draft.paths),
    subjects: linesOf(draft.subjects),
    authors: linesOf(draft.authors),
    only_if_asked: draft.onlyIfAsked,
    targets: linesOf(draft.targets),
    what_it_touches: draft.whatItTouches,
    tree: draft.tree,
    owner: draft.owner.trim(),
    commanders: linesOf(draft.commanders),
    minutes_a_day: Number(draft.minutesADay),
    quiet_hours: draft.quietHours,
  };
}

/** Return the rule as a file for `intake/rules/` or `wqlab rule add`: without what is the default anyway. */
export function ruleYaml(rule: ListRule): string {
  const { name, summary, archive, enabled, paths, subjects, authors } = rule;
  return toYaml({
    name,
    ...(summary && { summary }),
    archive,
    ...(enabled && { enabled }),
    ...(paths?.length && { paths }),
    ...(subjects?.length && { subjects }),
    ...(authors?.length && { authors }),
    only_if_asked: rule.only_if_asked ?? true,
    ...(rule.targets?.length && { targets: rule.targets }),
    ...(rule.what_it_touches && { what_it_touches: true }),
    tree: rule.tree,
    owner: rule.owner,
    ...(rule.commanders?.length && { commanders: rule.commanders }),
    minutes_a_day: rule.minutes_a_day ?? 240,
    ...(rule.quiet_hours?.length && { quiet_hours: hoursOf(rule.quiet_hours) }),
  });
}

/** Quiet hours as a file has them. */
export function hoursOf(hours: readonly QuietHours[]): { begins: string; ends: string }[] {
  return shortHours(hours).map(({ begins, ends }) => ({ begins, ends }));
}

export function shortHours(hours: readonly QuietHours[] | undefined): QuietHours[] {
  return (hours ?? []).map(({ begins, ends }) => ({ begins: clockTime(begins), ends: clockTime(ends) }));
}

/** The entries of a text with one a line; empty lines are none. */
export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map(line => line.trim())
    .filter(Boolean);
}

/** The server's messages for a field of the request and for its entries: `/targets` and `/targets/0`. */
export function fieldError(error: Error | null, field: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const found = (error.problem.errors ?? []).filter(
    each => each.pointer === `/${field}` || each.pointer?.startsWith(`/${field}/`),
  );
  return [...new Set(found.map(each => each.detail))].join("; ") || undefined;
}
