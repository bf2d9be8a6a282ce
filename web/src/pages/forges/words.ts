/** Words for forges: who may spend device time, and what a head belongs to. */
import type { ForgeDetail, ForgeHeadState, ForgeHeadView } from "@/api/types";
import { oneLine } from "@/lib/words";

/** Words of each state; the type makes a missing one an error. */
const STATE_WORDS: Record<ForgeHeadState, string> = {
  reading: "being read",
  waiting: "waiting",
  measuring: "being measured",
  measured: "measured",
  not_measured: "not measured",
};

export const KIND_WORDS: Record<ForgeDetail["kind"], string> = {
  github: "GitHub",
  gitlab: "GitLab",
  gitea: "Gitea or Forgejo",
};

/** How many heads are in which state. */
export function countsText(heads: Partial<Record<ForgeHeadState, number>>): string {
  const found = (Object.keys(STATE_WORDS) as ForgeHeadState[])
    .filter(state => heads[state])
    .map(state => `${heads[state]} ${STATE_WORDS[state]}`);
  return found.length === 0 ? "No heads yet." : `Heads: ${found.join(", ")}.`;
}

/** Who may spend device time. */
export function spendersText({ may_spend, label }: Pick<ForgeDetail, "may_spend" | "label">): string {
  const who = may_spend === "listed" ? "listed accounts" : "accounts with write access";
  return label === null ? who : `${who}, or one commit by the label ${oneLine(label)}`;
}

/** `Pull request 7: title`, or `Branch NAME`. */
export function changeText({ change, title }: Pick<ForgeHeadView, "change" | "title">): string {
  const [kind, ...rest] = change.split("/");
  if (kind === "branch") return `Branch ${rest.join("/")}`;
  return title ? `Pull request ${rest.join("/")}: ${title}` : `Pull request ${rest.join("/")}`;
}

/** Page of a pull request or branch on the forge. */
export function changeUrl(
  { kind, url }: Pick<ForgeDetail, "kind" | "url">,
  { change }: Pick<ForgeHeadView, "change">,
): string {
  const rest = change.slice(change.indexOf("/") + 1);
  const branch = rest.split("/").map(encodeURIComponent).join("/");
  const isPull = change.startsWith("pull/");
  if (kind === "gitlab") return isPull ? `${url}/-/merge_requests/${rest}` : `${url}/-/tree/${branch}`;
  if (kind === "gitea") return isPull ? `${url}/pulls/${rest}` : `${url}/src/branch/${branch}`;
  return isPull ? `${url}/pull/${rest}` : `${url}/tree/${branch}`;
}
