/**
 * A text that grows, by lines: a boot's console or a build's log. Lines are numbered from 1, as readers and links count
 * them; `byteOf` and `lineAt` tie them to the offsets that the server knows.
 */
import { Printable, settled } from "./printable";

export type LogState = "loading" | "live" | "reconnecting" | "ended" | "failed";

export class Log {
  /** Without colours. The last one may still grow; a text that ends with a line feed has an empty one there. */
  private readonly text: string[] = [""];
  /** Where each line begins, in bytes. */
  private readonly starts: number[] = [0];
  private readonly pieces: string[] = [];
  private readonly printable = new Printable();
  private readonly listeners = new Set<() => void>();
  private open = "";
  private byteCount = 0;
  private pending: ReturnType<typeof setTimeout> | undefined;
  state: LogState = "loading";
  /** Why it could not be read, where `state` is `failed`. */
  error: unknown = null;
  /** Grows with every change that listeners were told of. */
  version = 0;

  get bytes(): number {
    return this.byteCount;
  }

  /** How many lines there are; the empty rest behind the last line feed is none. */
  get lineCount(): number {
    return this.text.length - (this.text.at(-1) === "" ? 1 : 0);
  }

  /** Lines `from` to `to`, both included, from 1. */
  lines(from: number, to: number): string[] {
    return this.text.slice(Math.max(0, from - 1), Math.min(to, this.lineCount));
  }

  line(number: number): string | undefined {
    return number > this.lineCount ? undefined : this.text[number - 1];
  }

  /** The number of the line that has this byte. */
  lineAt(byte: number): number {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] as number) <= byte) low = middle;
      else high = middle - 1;
    }
    return Math.max(1, Math.min(low + 1, this.lineCount));
  }

  /** Everything printed so far with its colours, in the pieces that it came in, from piece `from` on. */
  printed(from = 0): readonly string[] {
    return this.pieces.slice(from);
  }

  /** The whole text, plain. */
  whole(): string {
    return this.text.join("\n");
  }

  append(bytes: Uint8Array): void {
    for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1))
      this.starts.push(this.byteCount + at + 1);
    this.byteCount += bytes.length;
    this.take(this.printable.next(bytes));
    this.tell();
  }

  become(state: LogState, error: unknown = null): void {
    if (state === "ended") this.take(this.printable.end());
    this.state = state;
    this.error = error;
    this.tell(0);
  }

  /** Calls back after changes, not more often than a reader can see; returns how to stop that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private take(text: string): void {
    if (text === "") return;
    this.pieces.push(text);
    const lines = (this.open + text).split("\n");
    this.open = lines.at(-1) as string;
    this.text.pop();
    for (const line of lines) this.text.push(settled(line));
  }

  private tell(afterMs = 60): void {
    if (afterMs > 0 && this.pending !== undefined) return;
    clearTimeout(this.pending);
    this.pending = setTimeout(() => {
      this.pending = undefined;
      this.version += 1;
      for (const listener of this.listeners) listener();
    }, afterMs);
  }
}
