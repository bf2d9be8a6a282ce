/** A log with what one does with it: search, go to a line and link to it, follow, copy, download. */
import {
  type ComponentType,
  type KeyboardEvent,
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useDeferredValue,
  useState,
} from "react";
import { bytes, grouped } from "@/lib/numbers";
import { CopyButton } from "@/parts/CopyButton";
import { announce } from "@/parts/LiveRegion";
import { useTyped } from "@/parts/useTyped";
import { LogText } from "./LogText";
import classes from "./LogView.module.css";
import type { Log, LogState } from "./log";
import { Search } from "./search";
import { useLogVersion, useSearchOf } from "./useLog";

/** What both ways to show a log take. */
export interface LogViewProps {
  log: Log;
  /** For those who do not see it: `Console of boot 3B`. */
  name: string;
  /** The chosen line, from 1. */
  line: number | null;
  /** What is searched for. */
  find: string;
  following: boolean;
  /** The reader scrolled to the end, or away from it. */
  onFollow(atEnd: boolean): void;
  onLine(line: number): void;
  lineHref(line: number): string;
  /** Lines worth finding. */
  marked: ReadonlySet<number>;
}

/** What of a log is in the page's address. */
export interface LogAddress {
  line: number | null;
  find: string;
  view: "terminal" | "text";
}

interface Props {
  log: Log;
  name: string;
  address: LogAddress;
  /** `replace`: typing, which makes no entry in the history. */
  onAddress(change: Partial<LogAddress>, replace: boolean): void;
  /** The page's address with this line chosen. */
  lineHref(line: number | null): string;
  download: { href: string; file: string };
  marked?: ReadonlySet<number>;
  /** Whether a terminal shows it, too: a console has colours. */
  terminal?: boolean;
  /** Said above the text: that it was cut, or that there is none. */
  note?: ReactNode;
  empty: string;
  onRetry?(): void;
}

/** Without the terminal (its code could not be had) the text does as well. */
const TerminalView = lazy<ComponentType<LogViewProps>>(() =>
  import("./TerminalView").catch(() => ({ default: LogText })),
);
const NO_MARKS: ReadonlySet<number> = new Set();

const STATES: Record<LogState, string> = {
  loading: "reading",
  live: "live",
  reconnecting: "reconnecting",
  ended: "complete",
  failed: "not read",
};

export function LogView(props: Props) {
  const { log, name, address, onAddress, lineHref, download, marked = NO_MARKS, terminal = false } = props;
  useLogVersion(log);
  const [find, setFind] = useTyped(address.find, find => onAddress({ find }, true));
  const query = useDeferredValue(find);
  const search = useSearchOf(log, query);
  const [atEnd, setAtEnd] = useState(address.line === null);
  const live = log.state !== "ended" && log.state !== "failed";
  const following = live && atEnd && address.line === null;
  const onFollow = useCallback((end: boolean) => setAtEnd(end), []);
  const onLine = (line: number) => onAddress({ line }, false);
  const follow = () => {
    setAtEnd(true);
    if (address.line !== null) onAddress({ line: null }, true);
  };
  const view: LogViewProps = {
    log,
    name,
    line: address.line,
    find: query,
    following,
    onFollow,
    onLine,
    lineHref,
    marked,
  };
  const asTerminal = terminal && address.view === "terminal";
  return (
    <div className={classes.whole}>
      <div className={`${classes.bar} no-print`}>
        <Finder
          {...{ log, search, query, find, setFind, line: address.line }}
          onHit={line => onAddress({ line, find }, true)}
        />
        <div className={classes.group}>
          <LineField key={address.line} line={address.line} last={log.lineCount} onLine={onLine} />
          {terminal && (
            <button
              type="button"
              className={classes.button}
              aria-pressed={following}
              disabled={!live}
              onClick={follow}
            >
              Follow
            </button>
          )}
          {terminal && (
            <fieldset className={classes.choice}>
              <legend className="hidden-visually">Shown as</legend>
              {(["terminal", "text"] as const).map(each => (
                <button
                  key={each}
                  type="button"
                  className={classes.button}
                  aria-pressed={address.view === each}
                  onClick={() => onAddress({ view: each }, true)}
                >
                  {each === "terminal" ? "Terminal" : "Text"}
                </button>
              ))}
            </fieldset>
          )}
        </div>
      </div>
      {props.note && <div className={classes.note}>{props.note}</div>}
      <div className={classes.screen} data-state={log.state}>
        {log.state === "failed" ? (
          <div className={classes.message}>
            <p>
              <strong>It could not be read.</strong> {log.error instanceof Error ? log.error.message : ""}
            </p>
            {props.onRetry && (
              <button type="button" className={classes.button} onClick={props.onRetry}>
                Try again
              </button>
            )}
          </div>
        ) : (
          <>
            <Suspense fallback={null}>
              {asTerminal ? <TerminalView {...view} /> : <LogText {...view} />}
            </Suspense>
            {log.lineCount === 0 && (
              <p className={`${classes.message} muted`}>
                {log.state === "loading" ? "Reading" : props.empty}
              </p>
            )}
          </>
        )}
      </div>
      <div className={`${classes.foot} no-print`}>
        <span className={classes.state} data-state={log.state}>
          {STATES[log.state]}
        </span>
        <span className="muted">
          {grouped(log.lineCount)} lines, {bytes(log.bytes)}
        </span>
        <span className={classes.group}>
          <CopyButton
            text={() => new URL(lineHref(address.line), location.href).href}
            label="Copy link"
            name={address.line === null ? "Copy link to this" : `Copy link to line ${address.line}`}
          />
          <CopyButton text={() => log.whole()} label="Copy all" name="Copy all of the text" />
          <a className={classes.button} href={download.href} download={download.file}>
            Download
          </a>
        </span>
      </div>
    </div>
  );
}

interface FinderProps {
  log: Log;
  /** Of `query`, which follows `find` as soon as there is time. */
  search: Search;
  query: string;
  find: string;
  setFind(text: string): void;
  line: number | null;
  onHit(line: number): void;
}

function Finder({ log, search, query, find, setFind, line, onHit }: FinderProps) {
  const hits = search.lines.length;
  const place = search.place(line);
  const go = (step: 1 | -1) => {
    const now = query === find ? search : new Search(log, find).advance();
    const next = now.from(line, step);
    if (next === null) return;
    onHit(next);
    announce(`Line ${next}, hit ${now.place(next)} of ${now.lines.length}`);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    go(event.shiftKey ? -1 : 1);
  };
  return (
    <search className={classes.finder}>
      <input
        type="search"
        className={classes.field}
        value={find}
        placeholder="Find"
        aria-label="Find in this text"
        spellCheck={false}
        onChange={event => setFind(event.target.value)}
        onKeyDown={onKey}
      />
      <span className={classes.hits} data-none={(find !== "" && hits === 0) || undefined}>
        {find === ""
          ? ""
          : place > 0
            ? `${grouped(place)} of ${grouped(hits)}`
            : hits === 0
              ? "none"
              : `${grouped(hits)} lines`}
      </span>
      <button
        type="button"
        className={classes.button}
        aria-label="Hit before"
        disabled={hits === 0}
        onClick={() => go(-1)}
      >
        ↑
      </button>
      <button
        type="button"
        className={classes.button}
        aria-label="Next hit"
        disabled={hits === 0}
        onClick={() => go(1)}
      >
        ↓
      </button>
    </search>
  );
}

/** Goes where a click on a line's number goes, for those without a mouse. */
function LineField({
  line,
  last,
  onLine,
}: {
  line: number | null;
  last: number;
  onLine(line: number): void;
}) {
  const [typed, setTyped] = useState(line === null ? "" : String(line));
  const wanted = /^\d{1,9}$/.test(typed) ? Number(typed) : null;
  return (
    <form
      className={classes.group}
      onSubmit={event => {
        event.preventDefault();
        if (wanted !== null && wanted >= 1) onLine(Math.min(wanted, Math.max(last, 1)));
      }}
    >
      <label className={classes.label}>
        Line
        <input
          className={classes.number}
          inputMode="numeric"
          value={typed}
          size={6}
          onChange={event => setTyped(event.target.value.trim())}
        />
      </label>
    </form>
  );
}
