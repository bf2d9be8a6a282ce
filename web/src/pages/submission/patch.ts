/** Split an mbox into mails, and a mail into runs of lines of the same kind. */

/** Split an mbox as written by `git format-patch --stdout` into mails without separator lines. */
export function splitMbox(mbox: string): string[] {
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

/** Group consecutive lines of the same kind; each line keeps its line feed. */
export function diffRuns(mail: string): DiffRun[] {
  const runs: DiffRun[] = [];
  let inDiff = false;
  for (const line of mail.split("\n")) {
    if (line.startsWith("diff --git ")) inDiff = true;
    // A signature line with git's version follows the last hunk.
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
