/** Props shared by the two renderings of a log: `TerminalView` and `LogText`. */
import type { Log } from "./log";

export interface LogRendererProps {
  log: Log;
  /** Accessible name: `Console of boot 3B`. */
  name: string;
  /** The selected line, from 1. */
  line: number | null;
  /** The search text. */
  find: string;
  following: boolean;
  /** Called when the user scrolls to the end or away from it. */
  onFollow(atEnd: boolean): void;
  onLine(line: number): void;
  lineHref(line: number): string;
  /** Highlighted lines, such as findings. */
  marked: ReadonlySet<number>;
}
