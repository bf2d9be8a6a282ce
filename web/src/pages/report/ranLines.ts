/** The lines of a diff, each with whether it ran, if that is known. */
import type { Arm, Ran, RanLines } from "@/api/types";

export interface DiffLine {
  key: number;
  text: string;
  ran: Ran | undefined;
  /** True for the name of a file and the head of a hunk. */
  isHead: boolean;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Return the lines of a diff from the names of its files on, without the lines that only git reads. */
export function diffLines(diff: string, ran: readonly RanLines[]): DiffLine[] {
  const states = new Map(
    ran.flatMap(each => each.lines.map(line => [key(each.file, each.arm, line), each.ran] as const)),
  );
  const found: DiffLine[] = [];
  let old = { file: "", line: 0, left: 0 };
  let now = { file: "", line: 0, left: 0 };
  const add = (text: string, state?: Ran, isHead = false) =>
    found.push({ key: found.length, text, ran: state, isHead });
  for (const text of diff.replace(/\n$/, "").split("\n")) {
    const hunk = HUNK.exec(text);
    if (text.startsWith("\\")) {
      add(text);
    } else if (old.left > 0 || now.left > 0) {
      const mark = text[0];
      const side = mark === "-" ? old : now;
      add(
        text,
        mark === "-" || mark === "+"
          ? states.get(key(side.file, mark === "-" ? "baseline" : "candidate", side.line))
          : undefined,
      );
      if (mark !== "+") old = { ...old, line: old.line + 1, left: old.left - 1 };
      if (mark !== "-") now = { ...now, line: now.line + 1, left: now.left - 1 };
    } else if (hunk) {
      old = { ...old, line: Number(hunk[1]), left: Number(hunk[2] ?? 1) };
      now = { ...now, line: Number(hunk[3]), left: Number(hunk[4] ?? 1) };
      add(text, undefined, true);
    } else if (text.startsWith("--- ")) {
      old = { ...old, file: text.slice("--- a/".length) };
    } else if (text.startsWith("+++ ")) {
      now = { ...now, file: text.slice("+++ b/".length) };
      add(text.endsWith("/dev/null") ? `${old.file} (removed)` : now.file, undefined, true);
    }
  }
  return found;
}

function key(file: string, arm: Arm, line: number): string {
  return `${arm} ${line} ${file}`;
}
