/** Where in a build's log the things are that the builder read out of it. */
import type { CompilerWarning } from "@/api/types";
import type { Log } from "@/console/log";

/** Of a failure's excerpt the lines that say `error`; the others are there for context. */
export function errorLines(excerpt: string): string[] {
  const lines = excerpt.split("\n").filter(line => line.trim() !== "");
  return lines.filter(line => /\berror: |undefined reference to |^ERROR: |\*\*\* (?!Waiting)/.test(line));
}

/** As the compiler printed it, but for the folder in front of the file's name. */
export function warningText(warning: CompilerWarning): string {
  return `${warning.where}: warning: ${warning.text}`;
}

/** The first line of the log for each text that is in one, ascending, each once. */
export function linesWith(log: Log, texts: readonly string[]): number[] {
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
