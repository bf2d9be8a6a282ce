/** The content of the form of a watch, and the watch that it stands for. */
import type { Batch, ListWatch, QuietHours, TreeWatch } from "@/api/types";
import { numberOrText } from "@/lib/parameters";
import { toYaml } from "@/lib/yaml";
import { clockTime, type WatchSpec } from "./watch";

/** Lists are texts with one entry a line, parameters too (`jobs=32`); numbers are texts as they are typed. */
export interface WatchDraft {
  kind: WatchSpec["kind"];
  name: string;
  summary: string;
  tree: string;
  targets: string;
  owner: string;
  minutesADay: string;
  quietHours: QuietHours[];

  archive: string;
  paths: string;
  subjects: string;
  authors: string;
  onlyIfAsked: boolean;
  whatItTouches: boolean;
  commanders: string;

  url: string;
  branches: string;
  tags: string;
  parameters: string;
  blocks: string;
  priority: string;
  everyMinutes: string;
  batch: Batch;
}

/** The defaults of contracts/wqlab_contracts/specs/watches.py. */
export const NEW_WATCH: WatchDraft = {
  kind: "list",
  name: "",
  summary: "",
  tree: "",
  targets: "",
  owner: "",
  minutesADay: "240",
  quietHours: [],
  archive: "",
  paths: "",
  subjects: "",
  authors: "",
  onlyIfAsked: true,
  whatItTouches: false,
  commanders: "",
  url: "",
  branches: "",
  tags: "",
  parameters: "",
  blocks: "",
  priority: "30",
  everyMinutes: "60",
  batch: "newest",
};

export function draftOf(spec: WatchSpec): WatchDraft {
  const common = {
    ...NEW_WATCH,
    kind: spec.kind,
    name: spec.name,
    summary: spec.summary ?? "",
    tree: spec.tree,
    targets: (spec.targets ?? []).join("\n"),
    owner: spec.owner,
    minutesADay: String(spec.minutes_a_day),
    quietHours: shortHours(spec.quiet_hours),
  };
  if (spec.kind === "list")
    return {
      ...common,
      archive: spec.archive,
      paths: (spec.paths ?? []).join("\n"),
      subjects: (spec.subjects ?? []).join("\n"),
      authors: (spec.authors ?? []).join("\n"),
      onlyIfAsked: spec.only_if_asked ?? true,
      whatItTouches: spec.what_it_touches ?? false,
      commanders: (spec.commanders ?? []).join("\n"),
    };
  return {
    ...common,
    url: spec.url ?? "",
    branches: (spec.branches ?? []).join("\n"),
    tags: (spec.tags ?? []).join("\n"),
    parameters: Object.entries(spec.parameters ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join("\n"),
    blocks: spec.blocks == null ? "" : String(spec.blocks),
    priority: String(spec.priority),
    everyMinutes: String(spec.every_minutes),
    batch: spec.batch ?? "newest",
  };
}

/** `enabled`: whether the watch is enabled, which the form does not change. */
export function specOf(draft: WatchDraft, enabled: boolean): Required<ListWatch> | Required<TreeWatch> {
  const common = {
    name: draft.name.trim(),
    summary: draft.summary.trim(),
    enabled,
    tree: draft.tree,
    targets: linesOf(draft.targets),
    owner: draft.owner.trim(),
    minutes_a_day: Number(draft.minutesADay),
    quiet_hours: draft.quietHours,
  };
  if (draft.kind === "list")
    return {
      kind: "list",
      ...common,
      archive: draft.archive,
      paths: linesOf(draft.paths),
      subjects: linesOf(draft.subjects),
      authors: linesOf(draft.authors),
      only_if_asked: draft.onlyIfAsked,
      what_it_touches: draft.whatItTouches,
      commanders: linesOf(draft.commanders),
    };
  return {
    kind: "tree",
    ...common,
    url: draft.url.trim() || null,
    branches: linesOf(draft.branches),
    tags: linesOf(draft.tags),
    parameters: parametersOf(draft.parameters),
    blocks: draft.blocks === "" ? null : Number(draft.blocks),
    priority: Number(draft.priority),
    every_minutes: Number(draft.everyMinutes),
    batch: draft.batch,
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

/** Fields in the order in which a file has them, those of both kinds. */
const FIELDS = (
  "kind name summary enabled archive tree url paths subjects authors only_if_asked branches tags targets " +
  "what_it_touches parameters blocks priority owner commanders every_minutes batch minutes_a_day quiet_hours"
).split(" ");

/** Return the watch as a file for `intake/watches/` or `wqlab watches add`: without what is empty or off anyway. */
export function watchYaml(spec: WatchSpec): string {
  const fields: Record<string, unknown> = { ...spec, quiet_hours: hoursOf(spec.quiet_hours ?? []) };
  const written = FIELDS.filter(name => !isDefault(name, fields[name]));
  return toYaml(
    Object.fromEntries(written.map(name => [name, fields[name]])) as Parameters<typeof toYaml>[0],
  );
}

function isDefault(name: string, value: unknown): boolean {
  if (name === "priority") return value === undefined || value === 30;
  if (typeof value === "boolean") return !value && name !== "only_if_asked";
  return value == null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);
}

/** Quiet hours as a file has them. */
function hoursOf(hours: readonly QuietHours[]): { begins: string; ends: string }[] {
  return shortHours(hours).map(({ begins, ends }) => ({ begins, ends }));
}

function shortHours(hours: readonly QuietHours[] | undefined): QuietHours[] {
  return (hours ?? []).map(({ begins, ends }) => ({ begins: clockTime(begins), ends: clockTime(ends) }));
}

/** The entries of a text with one a line; empty lines are none. */
export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map(line => line.trim())
    .filter(Boolean);
}
