/** The server's mistakes, each at the field it is about. Fields have names; `Faults` knows what is said of each. */
import { type Draft, holderOf, nameOf, type Options, type Pair, parameters, wanted } from "./draft";

export interface Mistake {
  /** JSON pointer into the request. */
  pointer: string;
  detail: string;
}

/** Name of a field: `git`, `tree`, `plan:xfs-fsync`, `setting:HOLDER`, `param:HOLDER:runtime_s`; "" is the whole form. */
export type Faults = ReadonlyMap<string, readonly string[]>;

const FIXED: Record<string, string> = {
  "/tree": "tree",
  "/series": "source",
  "/series/git": "git",
  "/series/git/url": "git",
  "/series/git/ref": "ref",
  "/series/git/base": "base",
  "/series/mbox": "mbox",
  "/series/mbox/text": "mbox",
  "/targets": "targets",
  "/blocks": "blocks",
  "/priority": "priority",
  "/recipe": "recipe",
  "/backend": "backend",
};

export function faultsOf(mistakes: readonly Mistake[], draft: Draft): Faults {
  const found = new Map<string, string[]>();
  for (const { pointer, detail } of mistakes) {
    const field = fieldOf(pointer, draft);
    const said = found.get(field) ?? [];
    // Targets of one plan share a mistake that was made once.
    if (!said.includes(detail)) found.set(field, [...said, detail]);
  }
  return found;
}

function fieldOf(pointer: string, draft: Draft): string {
  const fixed = FIXED[pointer];
  if (fixed !== undefined) return fixed;
  const [, place, index = "", part = "", rest = ""] = pointer.split("/").map(unescaped);
  const pair = place === "targets" ? wanted(draft)[Number(index)] : undefined;
  return pair ? fieldOfTarget(pair, part, rest, draft) : "";
}

const OPTIONS: Record<string, Options> = { scenarios: "scenario", settings: "setting" };

function fieldOfTarget(pair: Pair, part: string, rest: string, draft: Draft): string {
  const option = OPTIONS[part];
  if (option) return `${option}:${holderOf(draft, option, pair)}`;
  if (part === "parameters") {
    const own = nameOf(pair);
    return `param:${parameters(draft, own).has(rest) ? own : pair.plan}:${rest}`;
  }
  if (part === "plan") return `plan:${pair.plan}`;
  if (part === "device_type") return `type:${pair.type}`;
  return `target:${nameOf(pair)}`;
}

/** One part of a JSON pointer (RFC 6901). */
function unescaped(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** What the form cannot even ask about yet. */
export function missing(draft: Draft, hasMbox: boolean): Mistake[] {
  const found: Mistake[] = [];
  if (draft.source === "git" && !draft.git.trim())
    found.push({ pointer: "/series/git/url", detail: "Give the repository's URL." });
  if (draft.source === "git" && !draft.ref.trim())
    found.push({ pointer: "/series/git/ref", detail: "Name the branch or tag that holds the series." });
  if (draft.source === "mbox" && !hasMbox)
    found.push({ pointer: "/series/mbox/text", detail: "Choose a file, or paste the mails." });
  if (draft.plan.length === 0) found.push({ pointer: "/targets", detail: "Choose a plan: what to measure." });
  if (draft.type.length === 0)
    found.push({ pointer: "/targets", detail: "Choose a device type: where to measure." });
  if (draft.plan.length > 0 && draft.type.length > 0 && wanted(draft).length === 0)
    found.push({ pointer: "/targets", detail: "Every target is unticked: tick one." });
  return found;
}

/** Without what is only missing from a form that somebody still fills in. */
export function spokenOf(faults: Faults, draft: Draft, hasMbox: boolean): Faults {
  const empty = new Set<string>(["git", "ref", "base"].filter(field => draft[field as "git"].trim() === ""));
  if (!hasMbox) empty.add("mbox");
  return new Map([...faults].filter(([field]) => !empty.has(field)));
}
