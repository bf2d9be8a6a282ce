/** Validation errors of a request, assigned to form fields. */
import { type Draft, holderOf, nameOf, type Options, type Pair, parameters, selectedTargets } from "./draft";

export interface RequestError {
  /** JSON pointer into the request. */
  pointer: string;
  detail: string;
}

/**
 * Error messages by field: `git`, `tree`, `targets`, `setting:HOLDER`, `param:HOLDER:runtime_s`; "" is the
 * whole form.
 */
export type FieldErrors = ReadonlyMap<string, readonly string[]>;

const FIELD_OF_POINTER: Record<string, string> = {
  "/tree": "tree",
  "/series": "source",
  "/series/git": "git",
  "/series/git/url": "git",
  "/series/git/ref": "ref",
  "/series/git/base": "base",
  "/series/thread": "message",
  "/series/thread/message_id": "message",
  "/series/thread/revision": "revision",
  "/series/mbox": "mbox",
  "/series/mbox/text": "mbox",
  "/targets": "targets",
  "/blocks": "blocks",
  "/looks": "blocks",
  "/layouts": "layouts",
  "/priority": "priority",
  "/recipe": "recipe",
  "/backend": "backend",
  "/walk": "walk",
  "/sweep": "vary",
  "/sweep/vary": "vary",
  "/sweep/costs": "costs",
};

/** Group errors by form field. */
export function fieldErrorsOf(errors: readonly RequestError[], draft: Draft): FieldErrors {
  const found = new Map<string, string[]>();
  for (const { pointer, detail } of errors) {
    const field = fieldOf(pointer, draft);
    const messages = found.get(field) ?? [];
    // Targets of one plan repeat an error of the plan's options.
    if (!messages.includes(detail)) found.set(field, [...messages, detail]);
  }
  return found;
}

function fieldOf(pointer: string, draft: Draft): string {
  const fixed = FIELD_OF_POINTER[pointer];
  if (fixed !== undefined) return fixed;
  const [, place, index = "", part = "", rest = ""] = pointer.split("/").map(unescapeToken);
  if (place === "sweep") return index === "base" ? part : "values";
  const pair = place === "targets" ? selectedTargets(draft)[Number(index)] : undefined;
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
  return part === "device_type" && pair.type === "" ? "vary" : "targets";
}

/** Unescape one token of a JSON pointer (RFC 6901). */
function unescapeToken(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Return errors for missing input that needs no request to detect. */
export function missingInput(draft: Draft, hasMbox: boolean): RequestError[] {
  const found: RequestError[] = [];
  if (draft.source === "git" && !draft.git.trim())
    found.push({
      pointer: "/series/git/url",
      detail: "Enter a URL of lore or Patchwork, a Message-ID, or a git URL and branch.",
    });
  if (draft.source === "git" && draft.git.trim() && !draft.ref.trim())
    found.push({ pointer: "/series/git/ref", detail: "Enter the branch or tag of the series." });
  if (draft.source === "thread" && !draft.message.trim())
    found.push({
      pointer: "/series/thread/message_id",
      detail: "Enter the Message-ID of a mail of the series, or the mail's URL.",
    });
  if (draft.source === "mbox" && !hasMbox)
    found.push({ pointer: "/series/mbox/text", detail: "Select an mbox file or paste its contents." });
  const sweep = draft.vary !== "";
  if (sweep && !draft.values.trim())
    found.push({ pointer: "/sweep/values", detail: "Enter the values over which to measure." });
  if (selectedTargets(draft).length === 0)
    found.push({ pointer: "/targets", detail: `Select at least one ${sweep ? "plan" : "target"}.` });
  return found;
}

/** Remove the errors of empty fields, for a form that is still being filled in. */
export function withoutEmptyFields(errors: FieldErrors, draft: Draft, hasMbox: boolean): FieldErrors {
  const empty = new Set<string>(
    ["git", "ref", "base", "message", "values"].filter(field => draft[field as "git"].trim() === ""),
  );
  if (!hasMbox) empty.add("mbox");
  return new Map([...errors].filter(([field]) => !empty.has(field)));
}
