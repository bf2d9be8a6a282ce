/**
 * A growing text by lines: the console of a boot or the log of a build. Lines are numbered from 1; `lineAt` maps the
 * server's byte offsets to line numbers.
 */
import { ConsoleDecoder, finalText } from "./decoder";

export type LogState = "loading" | "live" | "reconnecting" | "ended" | "failed";

export class Log {
  /** The last line may still grow; it is empty after a line feed. */
  private readonly textLines: string[] = [""];
  /** Byte offset of each line. */
  private readonly lineOffsets: number[] = [0];
  private readonly decoder = new ConsoleDecoder();
  private readonly listeners = new Set<() => void>();
  /** Text of the last, incomplete line, with carriage returns and backspaces. */
  private incomplete = "";
  private byteCount = 0;
  private notifyTimer: ReturnType<typeof setTimeout> | undefined;
  state: LogState = "loading";
  /** The error, if `state` is `failed`. */
  error: unknown = null;
  /** Incremented each time listeners are notified. */
  version = 0;

  get bytes(): number {
    return this.byteCount;
  }

  /** Number of lines, without the empty text after the last line feed. */
  get lineCount(): number {
    return this.textLines.length - (this.textLines.at(-1) === "" ? 1 : 0);
  }

  /** Return lines `from` to `to`, both included, counted from 1. */
  lines(from: number, to: number): string[] {
    return this.textLines.slice(Math.max(0, from - 1), Math.min(to, this.lineCount));
  }

  /** Return one line; undefined if it does not exist. */
  line(number: number): string | undefined {
    return number > this.lineCount ? undefined : this.textLines[number - 1];
  }

  /** Return the number of the line that contains a byte offset. */
  lineAt(byte: number): number {
    let low = 0;
    let high = this.lineOffsets.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.lineOffsets[middle] as number) <= byte) low = middle;
      else high = middle - 1;
    }
    return Math.max(1, Math.min(low + 1, this.lineCount));
  }

  /** Return the whole text. */
  plainText(): string {
    return this.textLines.join("\n");
  }

  /** Append received bytes. */
  append(bytes: Uint8Array): void {
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1))
      this.lineOffsets.push(this.byteCount + at + 1);
    this.byteCount += bytes.length;
    this.addText(this.decoder.decode(bytes));
    this.notify();
  }

  /** Set the state and notify listeners. */
  setState(state: LogState, error: unknown = null): void {
    if (state === "ended") this.addText(this.decoder.finish());
    this.state = state;
    this.error = error;
    this.notify(0);
  }

  /** Call `listener` after changes, at most every 60 ms. Returns the function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private addText(text: string): void {
    if (text === "") return;
    const lines = (this.incomplete + text).split("\n");
    this.incomplete = lines.at(-1) as string;
    this.textLines.pop();
    for (const line of lines) this.textLines.push(finalText(line));
  }

  private notify(afterMs = 60): void {
    if (afterMs > 0 && this.notifyTimer !== undefined) return;
    clearTimeout(this.notifyTimer);
    this.notifyTimer = setTimeout(() => {
      this.notifyTimer = undefined;
      this.version += 1;
      for (const listener of this.listeners) listener();
    }, afterMs);
  }
}
