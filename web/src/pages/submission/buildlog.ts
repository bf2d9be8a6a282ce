/** Find errors and warnings in a build log. */
import type { CompilerWarning } from "@/api/types";
import type { Log } from "@/console/log";

/** Return the error lines of a failure's excerpt, without context lines. */
export function errorLines(excerpt: string): string[] {
  const lines = excerpt.split("\n").filter(line => line.trim() !== "");
  return lines.filter(line => /\berror: |undefined reference to |^ERROR: |\*\*\* (?!Waiting)/.test(line));
}

/** Format a warning as the compiler printed it, without the directory prefix. */
export function warningText(warning: CompilerWarning): string {
  return `${warning.where}: warning: ${warning.text}`;
}

/** Return the number of the first line that contains each text: ascending, without duplicates. */
export function findLines(log: Log, texts: readonly string[]): number[] {
  const left = new Set(texts);
  const found = new Set<number>();
  log.lines(1, log.lineCount).forEach((line, at) => {
    for (const text of left) {
      if (!line.includes(text)) continue;
      left.delete(text);
      found.add(at + 1);
    }
  });
  return [...found];
}
