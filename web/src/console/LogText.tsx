/**
 * A log as plain text with numbered lines: for screen readers, for the browser's own search, for selecting across pages.
 * It is all in the document; pieces out of sight are not laid out (`content-visibility`), so 10 MB stay quick.
 */
import { type MouseEvent, memo, useEffect, useLayoutEffect, useRef } from "react";
import { clean } from "@/lib/words";
import { Scroll } from "@/parts/Scroll";
import classes from "./LogText.module.css";
import type { LogViewProps } from "./LogView";
import { useLogVersion } from "./useLog";

const PIECE = 250;
const ROW_REM = 1.125;

export function LogText(props: LogViewProps) {
  const { log, name, line, following, onFollow, onLine, marked } = props;
  useLogVersion(log);
  const box = useRef<HTMLDivElement>(null);
  const many = log.lineCount;
  const digits = Math.max(4, String(many).length);

  useLayoutEffect(() => {
    if (following && box.current && many > 0) box.current.scrollTop = box.current.scrollHeight;
  }, [following, many]);

  // Goes to the chosen line once it is there.
  const there = line !== null && line <= many;
  useEffect(() => {
    const scroller = box.current;
    if (!there || line === null || !scroller) return;
    const row = rowPx();
    const top = (line - 1) * row;
    if (top < scroller.scrollTop || top + row > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top - scroller.clientHeight / 3;
  }, [there, line]);

  useEffect(() => {
    const scroller = box.current;
    if (!scroller) return;
    const scrolled = () =>
      onFollow(scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2 * rowPx());
    scroller.addEventListener("scroll", scrolled, { passive: true });
    return () => scroller.removeEventListener("scroll", scrolled);
  }, [onFollow]);

  const choose = (event: MouseEvent<HTMLElement>) => {
    const top = event.currentTarget.getBoundingClientRect().top;
    const number = Math.floor((event.clientY - top) / rowPx()) + 1;
    if (number >= 1 && number <= many) onLine(number);
  };
  return (
    <Scroll name={name} className={classes.box} ref={box}>
      <div className={classes.lines} style={{ "--digits": digits } as React.CSSProperties}>
        {/* For the mouse; the field for a line's number does the same. */}
        <div className={classes.numbers} aria-hidden="true" onClick={choose}>
          {pieces(many).map(from => (
            <Numbers key={from} from={from} to={Math.min(many, from + PIECE - 1)} />
          ))}
        </div>
        <div className={classes.text}>
          {[...marked].map(number => (
            <div key={number} className={classes.mark} style={{ top: `${(number - 1) * ROW_REM}rem` }} />
          ))}
          {there && <div className={classes.chosen} style={{ top: `${((line ?? 1) - 1) * ROW_REM}rem` }} />}
          {pieces(many).map(from => {
            const to = Math.min(many, from + PIECE - 1);
            const whole = to === from + PIECE - 1 && to < many;
            return (
              <Piece
                key={from}
                text={whole ? null : log.lines(from, to).join("\n")}
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

function pieces(lines: number): number[] {
  return Array.from({ length: Math.ceil(lines / PIECE) }, (_, at) => at * PIECE + 1);
}

function rowPx(): number {
  return ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}

interface PieceProps {
  log: LogViewProps["log"];
  from: number;
  to: number;
  /** What the piece holds while it still grows; null once it never changes again. */
  text: string | null;
}

const Piece = memo(
  ({ log, from, to, text }: PieceProps) => (
    <pre className={classes.piece} style={sized(from, to)}>
      {`${clean(text ?? log.lines(from, to).join("\n"))}\n`}
    </pre>
  ),
  (a, b) => a.log === b.log && a.from === b.from && a.to === b.to && a.text === b.text,
);

const Numbers = memo(({ from, to }: { from: number; to: number }) => (
  <pre className={classes.piece} style={sized(from, to)}>
    {`${Array.from({ length: to - from + 1 }, (_, at) => from + at).join("\n")}\n`}
  </pre>
));

function sized(from: number, to: number) {
  return { height: `${(to - from + 1) * ROW_REM}rem` };
}
