/** What there is to say about a head of a watched tree. */
import type { HeadRange, WatchedHead } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";

/** The first 12 digits of a commit, as the kernel writes it. */
export function short(commit: string): string {
  return commit.slice(0, 12);
}

/** How far a head is from the one that it is compared with: `12 commits`; empty if that is not known. */
export function relatedText({ related }: Pick<WatchedHead, "related">): string {
  if (!related) return "";
  const gone = related.behind > 0 ? `, ${related.behind} no longer there` : "";
  return `${count(related.ahead, "commit")}${gone}`;
}

/** Sentences about a head: its reason, for which head it was skipped, a cut of the history, the range to bisect. */
export function notesOf(head: WatchedHead): string[] {
  return [
    oneLine(head.reason),
    insteadText(head),
    head.cut ? `history is cut: ${oneLine(head.cut)}` : "",
    head.range ? rangeText(head.range) : "",
  ].filter(Boolean);
}

/** The head that was measured instead, unless the reason names it. */
function insteadText({ skipped_by, reason }: WatchedHead): string {
  if (!skipped_by || reason.includes(short(skipped_by.commit))) return "";
  return `${short(skipped_by.commit)} is measured instead`;
}

function rangeText({ good, bad, commits, skipped, descends }: HeadRange): string {
  if (!descends)
    return `differs, but ${short(bad)} does not descend from ${short(good)}: there is no range to bisect`;
  const size = commits === null ? "" : `, ${count(commits, "commit")}`;
  const between = skipped.length > 0 ? `; heads between: ${skipped.map(short).join(", ")}` : "";
  return `to bisect: ${short(good)}..${short(bad)}${size}${between}`;
}
