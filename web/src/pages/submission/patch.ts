/** Patches as mailed: an mbox cut into mails, a mail into runs of lines that look alike. */

/** The mails of an mbox as `git format-patch --stdout` writes it, without their separator lines. */
export function mailsOf(mbox: string): string[] {
  return mbox
    .split(/^From [0-9a-f]{40} .*\n/m)
    .map(mail => mail.trimEnd())
    .filter(mail => mail !== "");
}

export type DiffKind = "text" | "file" | "hunk" | "added" | "removed";

export interface DiffRun {
  kind: DiffKind;
  text: string;
}

/** Consecutive lines of one kind together, each with its line feed. */
export function diffRuns(mail: string): DiffRun[] {
  const runs: DiffRun[] = [];
  let inDiff = false;
  for (const line of mail.split("\n")) {
    if (line.startsWith("diff --git ")) inDiff = true;
    // What follows the last hunk: git's version under a signature line.
    if (line === "-- ") inDiff = false;
    const kind = inDiff ? kindOf(line) : "text";
    const last = runs.at(-1);
    if (last?.kind === kind) last.text += `${line}\n`;
    else runs.push({ kind, text: `${line}\n` });
  }
  return runs;
}

function kindOf(line: string): DiffKind {
  if (
    /^(diff --git |index |--- |\+\+\+ |new file |deleted file |similarity |rename |old mode |new mode )/.test(
      line,
    )
  )
    return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "text";
}
