/** Incremental search in a log: lines already searched are not searched again as the log grows. */
import type { Log } from "./log";

export class Search {
  /** Numbers of the matching lines, ascending. */
  readonly lines: number[] = [];
  private readonly log: Log;
  private readonly query: string;
  private searchedLines = 0;

  constructor(log: Log, query: string) {
    this.log = log;
    this.query = query.toLowerCase();
  }

  /** Search the lines added since the last call. The last line may have grown, so it is searched again. */
  advance(): this {
    if (this.query === "") return this;
    if (this.lines.at(-1) === this.searchedLines) this.lines.pop();
    const from = Math.max(1, this.searchedLines);
    this.log.lines(from, this.log.lineCount).forEach((line, at) => {
      if (line.toLowerCase().includes(this.query)) this.lines.push(from + at);
    });
    this.searchedLines = this.log.lineCount;
    return this;
  }

  /** Return the match after (`step` 1) or before (-1) a line, wrapping around; null if there is none. */
  next(line: number | null, step: 1 | -1): number | null {
    if (this.lines.length === 0) return null;
    const match =
      step === 1
        ? this.lines.find(each => line === null || each > line)
        : this.lines.findLast(each => line !== null && each < line);
    return match ?? (step === 1 ? this.lines[0] : this.lines.at(-1)) ?? null;
  }

  /** Return the position of a line among the matches, from 1; 0 if the line does not match. */
  position(line: number | null): number {
    return line === null ? 0 : this.lines.indexOf(line) + 1;
  }
}
