/** The content of the form of a watched tree, and the watched tree that it stands for. */
import type { Batch, QuietHours, WatchedTree } from "@/api/types";
import { numberOrText } from "@/lib/parameters";
import { toYaml } from "@/lib/yaml";
import { hoursOf, linesOf, shortHours } from "./ruleDraft";

/** Lists are texts with one entry a line, parameters too (`jobs=32`); numbers are texts as they are typed. */
export interface TreeDraft {
  name: string;
  summary: string;
  tree: string;
  url: string;
  branches: string;
  tags: string;
  targets: string;
  parameters: string;
  blocks: string;
  priority: string;
  owner: string;
  everyMinutes: string;
  batch: Batch;
  minutesADay: string;
  quietHours: QuietHours[];
}

/** The defaults of contracts/wqlab_contracts/specs/watched_trees.py. */
export const NEW_TREE: TreeDraft = {
  name: "",
  summary: "",
  tree: "",
  url: "",
  branches: "",
  tags: "",
  targets: "",
  parameters: "",
  blocks: "",
  priority: "30",
  owner: "",
  everyMinutes: "60",
  batch: "newest",
  minutesADay: "240",
  quietHours: [],
};

export function treeDraftOf(spec: WatchedTree): TreeDraft {
  return {
    name: spec.name,
    summary: spec.summary ?? "",
    tree: spec.tree,
    url: spec.url ?? "",
    branches: (spec.branches ?? []).join("\n"),
    tags: (spec.tags ?? []).join("\n"),
    targets: spec.targets.join("\n"),
    parameters: Object.entries(spec.parameters ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join("\n"),
    blocks: spec.blocks == null ? "" : String(spec.blocks),
    priority: String(spec.priority),
    owner: spec.owner,
    everyMinutes: String(spec.every_minutes),
    batch: spec.batch ?? "newest",
    minutesADay: String(spec.minutes_a_day),
    quietHours: shortHours(spec.quiet_hours),
  };
}

/** `enabled`: whether it is watched, which the form does not change. */
export function watchedTreeOf(draft: TreeDraft, enabled: boolean): Required<WatchedTree> {
  return {
    name: draft.name.trim(),
    summary: draft.summary.trim(),
    enabled,
    tree: draft.tree,
    url: draft.url.trim() || null,
    branches: linesOf(draft.branches),
    tags: linesOf(draft.tags),
    targets: linesOf(draft.targets),
    parameters: parametersOf(draft.parameters),
    blocks: draft.blocks === "" ? null : Number(draft.blocks),
    priority: Number(draft.priority),
    owner: draft.owner.trim(),
    every_minutes: Number(draft.everyMinutes),
    batch: draft.batch,
    minutes_a_day: Number(draft.minutesADay),
    quiet_hours: draft.quietHours,
  };
}

/** Parse `name=value` lines; a line without `=` is a parameter without a value, which the lab refuses by its name. */
export function parametersOf(text: string): Record<string, string | number> {
  return Object.fromEntries(
    linesOf(text).map(line => {
      const at = line.includes("=") ? line.indexOf("=") : line.length;
      return [line.slice(0, at).trim(), numberOrText(line.slice(at + 1).trim())];
    }),
  );
}

/** Return the lines of a parameters field that are no `name=value`. */
export function unreadableParameters(text: string): string[] {
  return linesOf(text).filter(line => !/^[^=\s]+\s*=\s*\S/.test(line));
}

/** Return a watched tree as a file for `wqlab watched-tree add`: without what is the default anyway. */
export function treeYaml(spec: WatchedTree): string {
  const { name, summary, enabled, tree, url, branches, tags, targets, parameters } = spec;
  return toYaml({
    name,
    ...(summary && { summary }),
    ...(enabled === false && { enabled }),
    tree,
    ...(url && { url }),
    ...(branches?.length && { branches }),
    ...(tags?.length && { tags }),
    targets,
    ...(parameters && Object.keys(parameters).length > 0 && { parameters }),
    ...(spec.blocks != null && { blocks: spec.blocks }),
    ...(spec.priority !== 30 && { priority: spec.priority ?? 30 }),
    owner: spec.owner,
    every_minutes: spec.every_minutes ?? 60,
    batch: spec.batch ?? "newest",
    minutes_a_day: spec.minutes_a_day ?? 240,
    ...(spec.quiet_hours?.length && { quiet_hours: hoursOf(spec.quiet_hours) }),
  });
}
