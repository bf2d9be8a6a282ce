/** The lines of a log that hold a text, found once: what was searched is not searched again as the log grows. */
import type { Log } from "./log";

export class Search {
  /** Line numbers, ascending. */
  readonly lines: number[] = [];
  private readonly log: Log;
  private readonly wanted: string;
  private upTo = 0;

  constructor(log: Log, query: string) {
    this.log = log;
    this.wanted = query.toLowerCase();
  }

  /** Looks at the lines that came since. The last one may have grown, so it is looked at again. */
  advance(): this {
    if (this.wanted === "") return this;
    if (this.lines.at(-1) === this.upTo) this.lines.pop();
    const from = Math.max(1, this.upTo);
    this.log.lines(from, this.log.lineCount).forEach((line, at) => {
      if (line.toLowerCase().includes(this.wanted)) this.lines.push(from + at);
    });
    this.upTo = this.log.lineCount;
    return this;
  }

  /** The hit after (`step` 1) or before (-1) a line, around the ends; null without any. */
  from(line: number | null, step: 1 | -1): number | null {
    if (this.lines.length === 0) return null;
    const next =
      step === 1
        ? this.lines.find(each => line === null || each > line)
        : this.lines.findLast(each => line !== null && each < line);
    return next ?? (step === 1 ? this.lines[0] : this.lines.at(-1)) ?? null;
  }

  /** `3 of 12`: the number of the hit that is on the line; 0 where the line is none. */
  place(line: number | null): number {
    return line === null ? 0 : this.lines.indexOf(line) + 1;
  }
}
