/** The form as data, and the request it makes. What is typed stays as typed: the server says what is wrong with it. */
import type { Backend, SubmissionRequest, Target } from "@/api/types";
import type { submitSearch } from "../route";
import type { Mbox } from "./keep";

export type Draft = typeof submitSearch.defaults;
/** Lists of what is chosen per plan, or per plan and device type. */
export type Options = "scenario" | "setting" | "param";

export const DEFAULT_PRIORITY = 50;

export interface Pair {
  plan: string;
  type: string;
}

export const nameOf = ({ plan, type }: Pair) => `${plan}@${type}`;

/** All that the chosen plans and device types make, wanted or not; their order is that of the request's targets. */
export function pairs(draft: Draft): Pair[] {
  return draft.plan.flatMap(plan => draft.type.map(type => ({ plan, type })));
}

export function wanted(draft: Draft): Pair[] {
  return pairs(draft).filter(pair => !draft.without.includes(nameOf(pair)));
}

/** What a holder has chosen; null when it has chosen nothing, [] when it has chosen none. */
export function chosen(draft: Draft, option: Options, holder: string): string[] | null {
  const found = draft[option].filter(each => each.startsWith(`${holder}:`));
  if (found.length === 0) return null;
  return found.map(each => each.slice(holder.length + 1)).filter(Boolean);
}

/** `draft` with other choices of one holder; null takes them back. */
export function withChosen(draft: Draft, option: Options, holder: string, values: string[] | null): Draft {
  const others = draft[option].filter(each => !each.startsWith(`${holder}:`));
  const own =
    values === null ? [] : values.length === 0 ? [`${holder}:`] : values.map(each => `${holder}:${each}`);
  return { ...draft, [option]: [...others, ...own] };
}

/** What holds for a target: its own choice, or that of its plan for every device type. */
export function holderOf(draft: Draft, option: Options, pair: Pair): string {
  return chosen(draft, option, nameOf(pair)) === null ? pair.plan : nameOf(pair);
}

export type Parameters = ReadonlyMap<string, string>;

export function parameters(draft: Draft, holder: string): Parameters {
  return new Map((chosen(draft, "param", holder) ?? []).map(split));
}

export function withParameter(draft: Draft, holder: string, name: string, value: string): Draft {
  const values = new Map(parameters(draft, holder));
  if (value.trim() === "") values.delete(name);
  else values.set(name, value);
  const written = [...values].map(([each, given]) => `${each}=${given}`);
  return withChosen(draft, "param", holder, written.length > 0 ? written : null);
}

function split(pair: string): [string, string] {
  const at = pair.indexOf("=");
  return at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
}

/** A form that is filled in so far that the server can say something about it. */
export function requestOf(draft: Draft, mbox: Mbox | null, defaultTree: string): SubmissionRequest {
  return {
    series: seriesOf(draft, mbox),
    tree: draft.tree || defaultTree,
    targets: wanted(draft).map(pair => targetOf(draft, pair)),
    blocks: draft.blocks.trim() === "" ? null : asTyped(draft.blocks),
    priority: draft.priority.trim() === "" ? DEFAULT_PRIORITY : asTyped(draft.priority),
    ...(draft.recipe ? { recipe: draft.recipe } : {}),
    // A word that an address brought goes as it is: the server says what is wrong with it.
    ...(draft.backend ? { backend: draft.backend as Backend } : {}),
  };
}

function seriesOf(draft: Draft, mbox: Mbox | null): SubmissionRequest["series"] {
  if (draft.source === "settings") return null;
  if (draft.source === "mbox") return { mbox: { text: mbox?.text ?? "" } };
  const base = draft.base.trim();
  return { git: { url: draft.git.trim(), ref: draft.ref.trim(), ...(base ? { base } : {}) } };
}

function targetOf(draft: Draft, pair: Pair): Target {
  const scenarios = chosen(draft, "scenario", holderOf(draft, "scenario", pair));
  const settings = chosen(draft, "setting", holderOf(draft, "setting", pair));
  // A parameter set for one device type is over that of the same name for all.
  const given = new Map([...parameters(draft, pair.plan), ...parameters(draft, nameOf(pair))]);
  return {
    plan: pair.plan,
    device_type: pair.type,
    ...(scenarios ? { scenarios } : {}),
    ...(settings ? { settings } : {}),
    ...(given.size > 0
      ? { parameters: Object.fromEntries([...given].map(([name, value]) => [name, numberOrText(value)])) }
      : {}),
  };
}

/** As `wqlab --param` reads it: `5` and `0.5` are numbers, `32k`, `1e3` and `007` are text. */
export function numberOrText(given: string): string | number {
  return /^-?(0|[1-9]\d*)(\.\d+)?$/.test(given) && given !== "-0" ? Number(given) : given;
}

/** A number, or what was typed in its place, for the server to say what is wrong with it. */
function asTyped(given: string): number {
  return numberOrText(given.trim()) as number;
}
