/** A log in xterm.js with numbered lines. Its own chunk: import it lazily. */
import { FitAddon } from "@xterm/addon-fit";
import type { Terminal } from "@xterm/xterm";
import { type MouseEvent, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { LogViewProps } from "./LogView";
import type { Log } from "./log";
import { lastRow, lineOfRow, rowsOfLine } from "./rows";
import classes from "./TerminalView.module.css";
import { makeTerminal } from "./terminal";

interface Sight {
  /** The number of the line that begins in each visible row; null where one goes on, or there is none. */
  rows: readonly (number | null)[];
  /** The chosen line's visible rows: first and how many. */
  chosen: { top: number; rows: number } | null;
  rowPx: number;
}

export default function TerminalView(props: LogViewProps) {
  const { log, name, line, find, following, onFollow, onLine, lineHref, marked } = props;
  const host = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Screen | null>(null);
  const [sight, setSight] = useState<Sight>({ rows: [], chosen: null, rowPx: 15 });
  const callbacks = useRef({ onFollow, line });
  callbacks.current = { onFollow, line };

  useEffect(() => {
    if (!host.current) return;
    const screen = new Screen(host.current, log, name, {
      onSight: () => setSight(screen.sight(callbacks.current.line)),
      // In the same frame as the rows, or the numbers would trail behind them.
      onRows: () => flushSync(() => setSight(screen.sight(callbacks.current.line))),
      onFollow: atEnd => callbacks.current.onFollow(atEnd),
    });
    setShown(screen);
    return () => screen.dispose();
  }, [log, name]);

  useEffect(() => {
    if (line !== null) shown?.goTo(line, find);
    else shown?.unselect();
    shown?.look();
  }, [shown, line, find]);

  useEffect(() => {
    if (following) shown?.follow();
  }, [shown, following]);

  const choose = (event: MouseEvent<HTMLAnchorElement>, number: number) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onLine(number);
  };
  return (
    <div className={classes.view} style={{ "--row": `${sight.rowPx}px` } as React.CSSProperties}>
      <div className={classes.gutter} aria-hidden="true">
        {sight.rows.map((number, row) =>
          number === null ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows of a screen have no other name
            <span key={row} />
          ) : (
            <a
              // biome-ignore lint/suspicious/noArrayIndexKey: rows of a screen have no other name
              key={row}
              href={lineHref(number)}
              tabIndex={-1}
              data-mark={marked.has(number) || undefined}
              data-chosen={number === line || undefined}
              onClick={event => choose(event, number)}
            >
              {number}
            </a>
          ),
        )}
      </div>
      <div className={classes.screen}>
        {sight.chosen && (
          <div
            className={classes.chosen}
            style={{ top: sight.chosen.top * sight.rowPx, height: sight.chosen.rows * sight.rowPx }}
          />
        )}
        <div className={classes.host} ref={host} />
      </div>
    </div>
  );
}

interface ScreenEvents {
  /** What is marked in sight may have changed. */
  onSight(): void;
  /** The rows in sight were drawn anew. */
  onRows(): void;
  /** The reader scrolled away from the end, or back to it. */
  onFollow(atEnd: boolean): void;
}

/** The terminal with what the page needs of it in lines of the log. */
class Screen {
  private readonly terminal: Terminal;
  private readonly fit = new FitAddon();
  private readonly resize: ResizeObserver;
  private readonly unsubscribe: () => void;
  private readonly host: HTMLElement;
  private readonly log: Log;
  private readonly events: ScreenEvents;
  private taken = 0;
  /** Line feeds that the terminal has worked off. */
  private fed = 0;
  private wanted: { line: number; find: string } | null = null;
  private atEnd = true;

  constructor(host: HTMLElement, log: Log, name: string, events: ScreenEvents) {
    this.host = host;
    this.log = log;
    this.events = events;
    this.terminal = makeTerminal();
    this.terminal.loadAddon(this.fit);
    this.terminal.open(host);
    this.terminal.textarea?.setAttribute("aria-label", `${name}. The same lines are under Text.`);
    this.terminal.attachCustomKeyEventHandler(event => this.key(event));
    this.terminal.onRender(() => {
      this.watchEnd();
      this.events.onRows();
    });
    // Out of sight nothing is drawn, but the numbers stay true for when it is.
    this.terminal.onWriteParsed(() => this.look());
    this.resize = new ResizeObserver(() => this.fit.fit());
    this.resize.observe(host);
    // The reader moves: what was still to be gone to is not.
    for (const kind of ["wheel", "pointerdown"])
      host.addEventListener(kind, () => (this.wanted = null), { passive: true });
    this.unsubscribe = log.subscribe(() => this.take());
    this.fit.fit();
    this.take();
  }

  dispose() {
    this.unsubscribe();
    this.resize.disconnect();
    this.terminal.dispose();
  }

  follow() {
    this.wanted = null;
    this.terminal.scrollToBottom();
    this.look();
  }

  unselect() {
    this.wanted = null;
    this.terminal.clearSelection();
  }

  /** Brings a line into sight as soon as it is there, and selects what was looked for in it. */
  goTo(line: number, find: string) {
    this.wanted = { line, find };
    this.tryToGo();
  }

  look() {
    this.events.onSight();
  }

  private watchEnd() {
    const { viewportY, baseY } = this.terminal.buffer.active;
    const atEnd = viewportY >= baseY;
    if (atEnd === this.atEnd) return;
    this.atEnd = atEnd;
    this.events.onFollow(atEnd);
  }

  sight(chosen: number | null): Sight {
    const { rows, buffer } = this.terminal;
    const view = buffer.active;
    const end = Math.min(lastRow(view), view.viewportY + rows - 1);
    const numbers: (number | null)[] = [];
    let number = lineOfRow(view, view.viewportY, this.fed, this.whole());
    for (let row = view.viewportY; row <= end; row += 1) {
      const line = view.getLine(row);
      const begins = !line?.isWrapped;
      if (begins && row > view.viewportY) number += 1;
      // Where the cursor waits there may be no line yet.
      const empty = row === lastRow(view) && line?.translateToString(true) === "";
      numbers.push(begins && !empty ? number : null);
    }
    return { rows: numbers, chosen: this.inSight(chosen), rowPx: this.rowPx() };
  }

  private inSight(line: number | null): Sight["chosen"] {
    const view = this.terminal.buffer.active;
    const found = line === null ? null : rowsOfLine(view, line, this.fed, this.whole());
    if (!found) return null;
    const top = Math.max(found.first, view.viewportY);
    const end = Math.min(found.first + found.count, view.viewportY + this.terminal.rows);
    return end > top ? { top: top - view.viewportY, rows: end - top } : null;
  }

  private rowPx(): number {
    const screen = this.host.querySelector(".xterm-screen");
    return screen ? screen.clientHeight / this.terminal.rows : 15;
  }

  private take() {
    for (const piece of this.log.printed(this.taken)) {
      this.taken += 1;
      const feeds = piece.split("\n").length - 1;
      this.terminal.write(piece, () => {
        this.fed += feeds;
        if (this.wanted) this.tryToGo();
      });
    }
  }

  /** Repeats as text arrives, until as much has come behind the line as keeps it in its place. */
  private tryToGo() {
    if (!this.wanted) return;
    const { line, find } = this.wanted;
    const view = this.terminal.buffer.active;
    const found = line > this.log.lineCount ? null : rowsOfLine(view, line, this.fed, this.whole());
    if (!found) return;
    const { rows } = this.terminal;
    if (this.fed >= line + rows || (this.log.state === "ended" && this.fed >= this.log.lineCount - 1))
      this.wanted = null;
    if (found.first < view.viewportY || found.first + found.count > view.viewportY + rows)
      this.terminal.scrollToLine(Math.max(0, found.first - Math.floor(rows / 3)));
    this.mark(found, find);
    this.look();
  }

  /** Whether no row was forgotten yet. */
  private whole(): boolean {
    const { options, rows, buffer } = this.terminal;
    return buffer.active.length < (options.scrollback ?? 0) + rows;
  }

  private mark(rows: { first: number; count: number }, find: string) {
    this.terminal.clearSelection();
    if (find === "") return;
    let text = "";
    for (let row = rows.first; row < rows.first + rows.count; row += 1)
      text +=
        this.terminal.buffer.active.getLine(row)?.translateToString(row === rows.first + rows.count - 1) ??
        "";
    const at = text.toLowerCase().indexOf(find.toLowerCase());
    const { cols } = this.terminal;
    if (at !== -1) this.terminal.select(at % cols, rows.first + Math.floor(at / cols), find.length);
  }

  /** Keys move the view; all others are the browser's, or nobody could leave with Tab or copy. */
  private key(event: KeyboardEvent): boolean {
    if (event.type !== "keydown" || event.ctrlKey || event.metaKey || event.altKey) return false;
    const move = {
      ArrowUp: () => this.terminal.scrollLines(-1),
      ArrowDown: () => this.terminal.scrollLines(1),
      PageUp: () => this.terminal.scrollPages(-1),
      PageDown: () => this.terminal.scrollPages(1),
      Home: () => this.terminal.scrollToTop(),
      End: () => this.terminal.scrollToBottom(),
    }[event.key];
    if (move) {
      event.preventDefault();
      this.wanted = null;
      move();
    }
    return false;
  }
}
