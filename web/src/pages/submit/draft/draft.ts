/** Form data and its conversion to a request. Input is passed on as typed; the server validates it. */
import type { Backend, SubmissionRequest, SweepRequest, Target } from "@/api/types";
import { numberOrText } from "@/lib/parameters";
import type { submitSearch } from "../search";

export type Draft = typeof submitSearch.defaults;

export interface Mbox {
  /** File name; empty for pasted text. */
  name: string;
  text: string;
}

/** Options that are set per plan, or per plan and device type. */
export type Options = "scenario" | "setting" | "param";

export const DEFAULT_PRIORITY = 50;

/** Dimensions of a sweep's topologies. */
export const DIMENSIONS = ["l3", "nodes", "cpus", "shard"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface Pair {
  plan: string;
  /** Empty in a sweep, which chooses the device types. */
  type: string;
}

export const nameOf = ({ plan, type }: Pair) => `${plan}@${type}`;

/**
 * Return all pairs of selected plans and device types, in the order of the request's targets, including excluded ones.
 */
export function pairs(draft: Draft): Pair[] {
  const types = draft.vary === "" ? draft.type : [""];
  return draft.plan.flatMap(plan => types.map(type => ({ plan, type })));
}

/** Return the pairs that are not excluded. */
export function selectedTargets(draft: Draft): Pair[] {
  return pairs(draft).filter(pair => !draft.without.includes(nameOf(pair)));
}

/**
 * Return the draft with one target selected or not, and with the others as they are: combinations that another plan or
 * device type would add are excluded.
 */
export function withTarget(draft: Draft, pair: Pair, on: boolean): Draft {
  const chosen = new Set(selectedTargets(draft).map(nameOf));
  if (on) chosen.add(nameOf(pair));
  else chosen.delete(nameOf(pair));
  const rest = [...chosen];
  const plan = on
    ? withName(draft.plan, pair.plan)
    : draft.plan.filter(each => each !== pair.plan || rest.some(name => name.startsWith(`${each}@`)));
  const type = on
    ? withName(draft.type, pair.type).filter(Boolean)
    : draft.type.filter(each => each !== pair.type || rest.some(name => name.endsWith(`@${each}`)));
  const next = { ...draft, plan, type };
  const without = pairs(next)
    .map(nameOf)
    .filter(name => !chosen.has(name));
  return { ...next, without };
}

function withName(names: readonly string[], name: string): string[] {
  return names.includes(name) ? [...names] : [...names, name];
}

/** Return the number of targets: with a sweep, each plan has one for each value. */
export function countTargets(draft: Draft): number {
  return selectedTargets(draft).length * (draft.vary === "" ? 1 : numbersOf(draft.values).length);
}

/**
 * Return the values a holder (a plan or target) sets for an option: null if it is not set, [] if it is set to none.
 */
export function optionValues(draft: Draft, option: Options, holder: string): string[] | null {
  const found = draft[option].filter(each => each.startsWith(`${holder}:`));
  if (found.length === 0) return null;
  return found.map(each => each.slice(holder.length + 1)).filter(Boolean);
}

/** Return the draft with a holder's values replaced; null removes them. */
export function withChosen(draft: Draft, option: Options, holder: string, values: string[] | null): Draft {
  const others = draft[option].filter(each => !each.startsWith(`${holder}:`));
  const own =
    values === null ? [] : values.length === 0 ? [`${holder}:`] : values.map(each => `${holder}:${each}`);
  return { ...draft, [option]: [...others, ...own] };
}

/** Return the holder whose values apply to a target: the target itself if it sets the option, otherwise its plan. */
export function holderOf(draft: Draft, option: Options, pair: Pair): string {
  return optionValues(draft, option, nameOf(pair)) === null ? pair.plan : nameOf(pair);
}

export type Parameters = ReadonlyMap<string, string>;

/** Return the parameters that a holder sets. */
export function parameters(draft: Draft, holder: string): Parameters {
  return new Map((optionValues(draft, "param", holder) ?? []).map(split));
}

/** Return the draft with one parameter set, or removed if the value is blank. */
export function withParameter(draft: Draft, holder: string, name: string, value: string): Draft {
  const values = new Map(parameters(draft, holder));
  if (value.trim() === "") values.delete(name);
  else values.set(name, value);
  const entries = [...values].map(([each, text]) => `${each}=${text}`);
  return withChosen(draft, "param", holder, entries.length > 0 ? entries : null);
}

function split(pair: string): [string, string] {
  const at = pair.indexOf("=");
  return at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
}

/** Convert the form to a request, complete or not. */
export function requestOf(draft: Draft, mbox: Mbox | null, defaultTree: string): SubmissionRequest {
  return {
    series: seriesOf(draft, mbox),
    tree: draft.tree || defaultTree,
    targets: selectedTargets(draft).map(pair => targetOf(draft, pair)),
    ...sizeOf(draft),
    ...(draft.layouts.trim() === "" ? {} : { layouts: asTyped(draft.layouts) }),
    priority: draft.priority.trim() === "" ? DEFAULT_PRIORITY : asTyped(draft.priority),
    ...(draft.recipe ? { recipe: draft.recipe } : {}),
    // Pass on an unknown backend from the URL; the server reports the error.
    ...(draft.backend ? { backend: draft.backend as Backend } : {}),
    ...(draft.identical === "measure" ? { force: true } : {}),
    ...(draft.walk === "patch" ? { walk: true } : {}),
    ...(draft.trace === "no" ? { trace: false } : {}),
    ...(draft.vary === "" ? {} : { sweep: sweepOf(draft, draft.vary) }),
  };
}

/** A number is a fixed size; several, `6,10,16`, are looks after which a run may stop. */
function sizeOf({ blocks: text }: Draft): Pick<SubmissionRequest, "blocks" | "looks"> {
  if (text.includes(",")) return { blocks: null, looks: numbersOf(text) };
  return { blocks: text.trim() === "" ? null : asTyped(text) };
}

function sweepOf(draft: Draft, vary: Dimension): SweepRequest {
  const stay = DIMENSIONS.filter(each => each !== vary && draft[each].trim() !== "");
  return {
    vary,
    values: numbersOf(draft.values),
    base: Object.fromEntries(stay.map(each => [each, asTyped(draft[each])])),
    ...(draft.costs.trim() === "" ? {} : { costs: draft.costs.trim() }),
  };
}

/** Parse a list of numbers; other input is passed on as text so that the server reports the error. */
function numbersOf(text: string): number[] {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(asTyped);
}

function seriesOf(draft: Draft, mbox: Mbox | null): SubmissionRequest["series"] {
  if (draft.source === "settings") return null;
  if (draft.source === "mbox") return { mbox: { text: mbox?.text ?? "" } };
  if (draft.source === "thread") {
    const revision = draft.revision.trim();
    return {
      thread: { message_id: draft.message.trim(), ...(revision ? { revision: asTyped(revision) } : {}) },
    };
  }
  const base = draft.base.trim();
  return { git: { url: draft.git.trim(), ref: draft.ref.trim(), ...(base ? { base } : {}) } };
}

function targetOf(draft: Draft, pair: Pair): Target {
  const scenarios = optionValues(draft, "scenario", holderOf(draft, "scenario", pair));
  const settings = optionValues(draft, "setting", holderOf(draft, "setting", pair));
  // Parameters of one device type override those of the plan.
  const merged = new Map([...parameters(draft, pair.plan), ...parameters(draft, nameOf(pair))]);
  return {
    plan: pair.plan,
    ...(pair.type === "" ? {} : { device_type: pair.type }),
    ...(scenarios ? { scenarios } : {}),
    ...(settings ? { settings } : {}),
    ...(merged.size > 0
      ? { parameters: Object.fromEntries([...merged].map(([name, value]) => [name, numberOrText(value)])) }
      : {}),
  };
}

/** Parse a number; other input is passed on as text so that the server reports the error. */
function asTyped(text: string): number {
  return numberOrText(text.trim()) as number;
}
