/** A log in xterm.js with line numbers. In a separate bundle: import it lazily. */
import { FitAddon } from "@xterm/addon-fit";
import type { Terminal } from "@xterm/xterm";
import { type MouseEvent, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import type { Log } from "./log";
import type { LogRendererProps } from "./renderer";
import { lastRow, lineOfRow, rowsOfLine } from "./rows";
import classes from "./TerminalView.module.css";
import { makeTerminal } from "./terminal";

interface Viewport {
  /** Number of the line that begins in each visible row; null for a wrapped or empty row. */
  rows: readonly (number | null)[];
  /** Visible rows of the selected line: the first and their number. */
  selected: { top: number; rows: number } | null;
  rowPx: number;
}

export default function TerminalView(props: LogRendererProps) {
  const { log, name, line, find, following, onFollow, onLine, lineHref, marked } = props;
  const host = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Screen | null>(null);
  const [viewport, setViewport] = useState<Viewport>({ rows: [], selected: null, rowPx: 15 });
  const callbacks = useRef({ onFollow, line });
  callbacks.current = { onFollow, line };

  useEffect(() => {
    if (!host.current) return;
    const screen = new Screen(host.current, log, name, {
      onChange: () => setViewport(screen.viewport(callbacks.current.line)),
      // Render the line numbers in the same frame as the rows.
      onRows: () => flushSync(() => setViewport(screen.viewport(callbacks.current.line))),
      onFollow: atEnd => callbacks.current.onFollow(atEnd),
    });
    setShown(screen);
    return () => screen.dispose();
  }, [log, name]);

  useEffect(() => {
    if (line !== null) shown?.goTo(line, find);
    else shown?.unselect();
    shown?.refresh();
  }, [shown, line, find]);

  useEffect(() => {
    if (following) shown?.follow();
  }, [shown, following]);

  const select = (event: MouseEvent<HTMLAnchorElement>, number: number) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    onLine(number);
  };
  return (
    <div className={classes.view} style={{ "--row": `${viewport.rowPx}px` } as React.CSSProperties}>
      <div className={classes.gutter} aria-hidden="true">
        {viewport.rows.map((number, row) =>
          number === null ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: screen rows have no other key
            <span key={row} />
          ) : (
            <a
              // biome-ignore lint/suspicious/noArrayIndexKey: screen rows have no other key
              key={row}
              href={lineHref(number)}
              tabIndex={-1}
              data-mark={marked.has(number) || undefined}
              data-selected={number === line || undefined}
              onClick={event => select(event, number)}
            >
              {number}
            </a>
          ),
        )}
      </div>
      <div className={classes.screen}>
        {viewport.selected && (
          <div
            className={classes.selected}
            style={{
              top: viewport.selected.top * viewport.rowPx,
              height: viewport.selected.rows * viewport.rowPx,
            }}
          />
        )}
        <div className={classes.host} ref={host} />
      </div>
    </div>
  );
}

interface ScreenEvents {
  /** The visible lines or marks may have changed. */
  onChange(): void;
  /** The visible rows were rendered. */
  onRows(): void;
  /** The user scrolled to the end or away from it. */
  onFollow(atEnd: boolean): void;
}

/** The terminal, addressed by lines of the log. */
class Screen {
  private readonly terminal: Terminal;
  private readonly fit = new FitAddon();
  private readonly resize: ResizeObserver;
  private readonly unsubscribe: () => void;
  private readonly host: HTMLElement;
  private readonly log: Log;
  private readonly events: ScreenEvents;
  private writtenChunks = 0;
  /** Line feeds that the terminal has processed. */
  private lineFeeds = 0;
  private target: { line: number; find: string } | null = null;
  private atEnd = true;

  constructor(host: HTMLElement, log: Log, name: string, events: ScreenEvents) {
    this.host = host;
    this.log = log;
    this.events = events;
    this.terminal = makeTerminal();
    this.terminal.loadAddon(this.fit);
    this.terminal.open(host);
    this.terminal.textarea?.setAttribute("aria-label", `${name}. Use the Text view for a screen reader.`);
    this.terminal.attachCustomKeyEventHandler(event => this.onKey(event));
    this.terminal.onRender(() => {
      this.watchEnd();
      this.events.onRows();
    });
    // Out of viewport nothing is drawn, but the numbers stay true for when it is.
    this.terminal.onWriteParsed(() => this.refresh());
    this.resize = new ResizeObserver(() => this.fit.fit());
    this.resize.observe(host);
    // User scrolling cancels a pending jump to a line.
    for (const kind of ["wheel", "pointerdown"])
      host.addEventListener(kind, () => (this.target = null), { passive: true });
    this.unsubscribe = log.subscribe(() => this.writeNewChunks());
    this.fit.fit();
    this.writeNewChunks();
  }

  dispose() {
    this.unsubscribe();
    this.resize.disconnect();
    this.terminal.dispose();
  }

  follow() {
    this.target = null;
    this.terminal.scrollToBottom();
    this.refresh();
  }

  unselect() {
    this.target = null;
    this.terminal.clearSelection();
  }

  /** Scroll to a line as soon as it is written, and select the search text in it. */
  goTo(line: number, find: string) {
    this.target = { line, find };
    this.scrollToTarget();
  }

  refresh() {
    this.events.onChange();
  }

  private watchEnd() {
    const { viewportY, baseY } = this.terminal.buffer.active;
    const atEnd = viewportY >= baseY;
    if (atEnd === this.atEnd) return;
    this.atEnd = atEnd;
    this.events.onFollow(atEnd);
  }

  viewport(selected: number | null): Viewport {
    const { rows, buffer } = this.terminal;
    const view = buffer.active;
    const end = Math.min(lastRow(view), view.viewportY + rows - 1);
    const numbers: (number | null)[] = [];
    let number = lineOfRow(view, view.viewportY, this.lineFeeds, this.isComplete());
    for (let row = view.viewportY; row <= end; row += 1) {
      const line = view.getLine(row);
      const begins = !line?.isWrapped;
      if (begins && row > view.viewportY) number += 1;
      // The cursor's row may not have a line yet.
      const empty = row === lastRow(view) && line?.translateToString(true) === "";
      numbers.push(begins && !empty ? number : null);
    }
    return { rows: numbers, selected: this.visibleRowsOf(selected), rowPx: this.rowPx() };
  }

  private visibleRowsOf(line: number | null): Viewport["selected"] {
    const view = this.terminal.buffer.active;
    const found = line === null ? null : rowsOfLine(view, line, this.lineFeeds, this.isComplete());
    if (!found) return null;
    const top = Math.max(found.first, view.viewportY);
    const end = Math.min(found.first + found.count, view.viewportY + this.terminal.rows);
    return end > top ? { top: top - view.viewportY, rows: end - top } : null;
  }

  private rowPx(): number {
    const screen = this.host.querySelector(".xterm-screen");
    return screen ? screen.clientHeight / this.terminal.rows : 15;
  }

  private writeNewChunks() {
    for (const chunk of this.log.chunksFrom(this.writtenChunks)) {
      this.writtenChunks += 1;
      const feeds = chunk.split("\n").length - 1;
      this.terminal.write(chunk, () => {
        this.lineFeeds += feeds;
        if (this.target) this.scrollToTarget();
      });
    }
  }

  /** Called again as text arrives, until a full screen of text follows the line. */
  private scrollToTarget() {
    if (!this.target) return;
    const { line, find } = this.target;
    const view = this.terminal.buffer.active;
    const found =
      line > this.log.lineCount ? null : rowsOfLine(view, line, this.lineFeeds, this.isComplete());
    if (!found) return;
    const { rows } = this.terminal;
    if (
      this.lineFeeds >= line + rows ||
      (this.log.state === "ended" && this.lineFeeds >= this.log.lineCount - 1)
    )
      this.target = null;
    if (found.first < view.viewportY || found.first + found.count > view.viewportY + rows)
      this.terminal.scrollToLine(Math.max(0, found.first - Math.floor(rows / 3)));
    this.selectText(found, find);
    this.refresh();
  }

  /** Return true if no row has been dropped from the scrollback. */
  private isComplete(): boolean {
    const { options, rows, buffer } = this.terminal;
    return buffer.active.length < (options.scrollback ?? 0) + rows;
  }

  private selectText(rows: { first: number; count: number }, find: string) {
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

  /** Handle scrolling keys; leave all others to the browser, such as Tab and copy. */
  private onKey(event: KeyboardEvent): boolean {
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
      this.target = null;
      move();
    }
    return false;
  }
}
