/** What is typed into the form that begins a bisection, and the request and the command that it makes. */
import type { BisectionRequest, DeviceTypeView, TestPlan } from "@/api/types";
import type { NewBisection } from "./search";

/** The value of the menu of metrics that searches for a failure of the kernel. Names of metrics have no space. */
export const FAILURE = "kernel failure";

export interface Draft {
  tree: string;
  good: string;
  bad: string;
  ref: string;
  plan: string;
  type: string;
  scenario: string;
  setting: string;
  /** Metric, or FAILURE. */
  what: string;
  blocks: string;
  stepBlocks: string;
  recipe: string;
  firstParent: boolean;
  submission: number | null;
}

export function draftOf({ metric, failure, ...of }: NewBisection): Draft {
  return {
    ...of,
    what: failure ? FAILURE : metric,
    blocks: "",
    stepBlocks: "",
    recipe: "",
    firstParent: false,
  };
}

/** Metrics that can differ on a device type, the primary one first; those that only explain come last. */
export function metricsOf(plan: TestPlan | undefined, type: DeviceTypeView | undefined): string[] {
  const role = type && !type.emulated ? "role_hardware" : "role_emulated";
  const rank = { primary: 0, secondary: 1, explanatory: 2 };
  return (plan?.metrics ?? []).toSorted((a, b) => rank[a[role]] - rank[b[role]]).map(each => each.name);
}

/** Empty fields are left to the server. */
export function requestOf(draft: Draft): BisectionRequest {
  return {
    tree: draft.tree,
    good: draft.good.trim(),
    bad: draft.bad.trim(),
    ref: draft.ref.trim() || null,
    plan: draft.plan,
    device_type: draft.type,
    scenario: draft.scenario || null,
    setting: draft.setting.trim() || null,
    metric: draft.what === FAILURE ? null : draft.what,
    failure: draft.what === FAILURE,
    blocks: draft.blocks ? Number(draft.blocks) : null,
    step_blocks: draft.stepBlocks ? Number(draft.stepBlocks) : null,
    into_merges: !draft.firstParent,
    recipe: draft.recipe || null,
    submission: draft.submission,
  };
}

/** The same on the command line. */
export function commandOf(request: BisectionRequest): string {
  const option = (name: string, value: string | number | null | undefined) =>
    value === null || value === undefined || value === "" ? [] : [`--${name} ${quoted(String(value))}`];
  return [
    "wqlab bisect",
    ...option("good", request.good || "GOOD"),
    ...option("bad", request.bad || "BAD"),
    ...option("tree", request.tree),
    ...option("ref", request.ref),
    ...option("target", `${request.plan}@${request.device_type}`),
    ...(request.failure ? ["--failure"] : option("metric", request.metric)),
    ...option("scenario", request.scenario),
    ...option("setting", request.setting),
    ...option("blocks", request.blocks),
    ...option("step-blocks", request.step_blocks),
    ...option("recipe", request.recipe),
    ...(request.into_merges ? [] : ["--first-parent"]),
    "--wait",
  ].join(" ");
}

/** A word for a POSIX shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
