/**
 * A log as text with line numbers, which screen readers and the browser's search can read. The whole log is in the
 * document; chunks outside the viewport are not laid out (`content-visibility`), so 10 MB stay responsive.
 */
import { type MouseEvent, memo, useEffect, useLayoutEffect, useRef } from "react";
import { clean } from "@/lib/words";
import { Scroll } from "@/parts/Scroll";
import classes from "./LogText.module.css";
import type { Log } from "./log";
import { useLogVersion } from "./useLog";

const CHUNK_LINES = 250;
const ROW_REM = 1.125;

interface LogTextProps {
  log: Log;
  /** Accessible name: `Console of boot 3B`. */
  name: string;
  /** The selected line, from 1. */
  line: number | null;
  following: boolean;
  /** Called when the user scrolls to the end or away from it. */
  onFollow(atEnd: boolean): void;
  onLine(line: number): void;
  /** Highlighted lines, such as findings. */
  marked: ReadonlySet<number>;
}

export function LogText(props: LogTextProps) {
  const { log, name, line, following, onFollow, onLine, marked } = props;
  useLogVersion(log);
  const box = useRef<HTMLDivElement>(null);
  const lineCount = log.lineCount;
  const digits = Math.max(4, String(lineCount).length);

  useLayoutEffect(() => {
    if (following && box.current && lineCount > 0) box.current.scrollTop = box.current.scrollHeight;
  }, [following, lineCount]);

  // Scroll to the selected line once it is loaded.
  const available = line !== null && line <= lineCount;
  useEffect(() => {
    const scroller = box.current;
    if (!available || line === null || !scroller) return;
    const row = rowPx();
    const top = (line - 1) * row;
    if (top < scroller.scrollTop || top + row > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top - scroller.clientHeight / 3;
  }, [available, line]);

  useEffect(() => {
    const scroller = box.current;
    if (!scroller) return;
    const scrolled = () =>
      onFollow(scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2 * rowPx());
    scroller.addEventListener("scroll", scrolled, { passive: true });
    return () => scroller.removeEventListener("scroll", scrolled);
  }, [onFollow]);

  const selectLine = (event: MouseEvent<HTMLElement>) => {
    const top = event.currentTarget.getBoundingClientRect().top;
    const number = Math.floor((event.clientY - top) / rowPx()) + 1;
    if (number >= 1 && number <= lineCount) onLine(number);
  };
  return (
    <Scroll name={name} className={classes.box} ref={box}>
      <div className={classes.lines} style={{ "--digits": digits } as React.CSSProperties}>
        {/* For the mouse; the line number field is the keyboard equivalent. */}
        <div className={classes.numbers} aria-hidden="true" onClick={selectLine}>
          {chunkStarts(lineCount).map(from => (
            <Numbers key={from} from={from} to={Math.min(lineCount, from + CHUNK_LINES - 1)} />
          ))}
        </div>
        <div className={classes.text}>
          {[...marked].map(number => (
            <div key={number} className={classes.mark} style={{ top: `${(number - 1) * ROW_REM}rem` }} />
          ))}
          {available && (
            <div className={classes.selected} style={{ top: `${((line ?? 1) - 1) * ROW_REM}rem` }} />
          )}
          {chunkStarts(lineCount).map(from => {
            const to = Math.min(lineCount, from + CHUNK_LINES - 1);
            const complete = to === from + CHUNK_LINES - 1 && to < lineCount;
            return (
              <Chunk
                key={from}
                text={complete ? null : log.lines(from, to).join("\n")}
                log={log}
                from={from}
                to={to}
              />
            );
          })}
        </div>
      </div>
    </Scroll>
  );
}

function chunkStarts(lines: number): number[] {
  return Array.from({ length: Math.ceil(lines / CHUNK_LINES) }, (_, at) => at * CHUNK_LINES + 1);
}

function rowPx(): number {
  return ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}

interface ChunkProps {
  log: Log;
  from: number;
  to: number;
  /** Text of the chunk while it still grows; null once it is complete. */
  text: string | null;
}

const Chunk = memo(
  ({ log, from, to, text }: ChunkProps) => (
    <pre className={classes.chunk} style={heightOf(from, to)}>
      {`${clean(text ?? log.lines(from, to).join("\n"))}\n`}
    </pre>
  ),
  (a, b) => a.log === b.log && a.from === b.from && a.to === b.to && a.text === b.text,
);

const Numbers = memo(({ from, to }: { from: number; to: number }) => (
  <pre className={classes.chunk} style={heightOf(from, to)}>
    {`${Array.from({ length: to - from + 1 }, (_, at) => from + at).join("\n")}\n`}
  </pre>
));

function heightOf(from: number, to: number) {
  return { height: `${(to - from + 1) * ROW_REM}rem` };
}
