/** Log viewer: search, go to and link to a line, follow, copy and download. */
import { type KeyboardEvent, type ReactNode, useCallback, useDeferredValue, useState } from "react";
import { bytes, grouped } from "@/lib/numbers";
import { CopyButton } from "@/parts/CopyButton";
import { announce } from "@/parts/LiveRegion";
import { useDebouncedText } from "@/parts/useDebouncedText";
import { LogText } from "./LogText";
import classes from "./LogView.module.css";
import type { Log, LogState } from "./log";
import { Search } from "./search";
import { useLogVersion, useSearchOf } from "./useLog";

/** State of the log viewer that is kept in the page's URL. */
export interface LogAddress {
  line: number | null;
  find: string;
}

interface LogViewProps {
  log: Log;
  name: string;
  address: LogAddress;
  /** `replace` replaces the history entry, for typing. */
  onAddress(change: Partial<LogAddress>, replace: boolean): void;
  /** URL of the page with this line selected. */
  lineHref(line: number | null): string;
  download: { href: string; file: string };
  marked?: ReadonlySet<number>;
  /** The text grows while it is shown, so offer to follow its end. */
  grows?: boolean;
  /** Note above the text, for example that it was truncated. */
  note?: ReactNode;
  empty: string;
  onRetry?(): void;
}

const NO_MARKS: ReadonlySet<number> = new Set();

const STATES: Record<LogState, string> = {
  loading: "loading",
  live: "live",
  reconnecting: "reconnecting",
  ended: "complete",
  failed: "failed",
};

export function LogView(props: LogViewProps) {
  const { log, name, address, onAddress, lineHref, download, marked = NO_MARKS, grows = false } = props;
  useLogVersion(log);
  const [find, setFind] = useDebouncedText(address.find, find => onAddress({ find }, true));
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
  return (
    <div className={classes.whole}>
      <div className={`${classes.bar} no-print`}>
        <Finder
          {...{ log, search, query, find, setFind, line: address.line }}
          onMatch={line => onAddress({ line, find }, true)}
        />
        <div className={classes.group}>
          <LineField key={address.line} line={address.line} last={log.lineCount} onLine={onLine} />
          {grows && (
            <button
              type="button"
              className="button"
              aria-pressed={following}
              disabled={!live}
              onClick={follow}
            >
              Follow
            </button>
          )}
        </div>
      </div>
      {props.note && <div className={classes.note}>{props.note}</div>}
      <div className={classes.screen} data-state={log.state}>
        {log.state === "failed" ? (
          <div className={classes.message}>
            <p>
              <strong>Could not be loaded.</strong> {log.error instanceof Error ? log.error.message : ""}
            </p>
            {props.onRetry && (
              <button type="button" className="button" onClick={props.onRetry}>
                Try again
              </button>
            )}
          </div>
        ) : (
          <>
            <LogText line={address.line} {...{ log, name, following, onFollow, onLine, marked }} />
            {log.lineCount === 0 && (
              <p className={`${classes.message} muted`}>
                {log.state === "loading" ? "Loading" : props.empty}
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
            name={address.line === null ? "Copy link to this log" : `Copy link to line ${address.line}`}
          />
          <CopyButton text={() => log.plainText()} label="Copy all" name="Copy all lines of the log" />
          <a className="button" href={download.href} download={download.file}>
            Download
          </a>
        </span>
      </div>
    </div>
  );
}

interface FinderProps {
  log: Log;
  /** Result of searching for `query`, the deferred value of `find`. */
  search: Search;
  query: string;
  find: string;
  setFind(text: string): void;
  line: number | null;
  onMatch(line: number): void;
}

function Finder({ log, search, query, find, setFind, line, onMatch }: FinderProps) {
  const matches = search.lines.length;
  const position = search.position(line);
  const go = (step: 1 | -1) => {
    const current = query === find ? search : new Search(log, find).advance();
    const next = current.next(line, step);
    if (next === null) return;
    onMatch(next);
    announce(`Line ${next}, match ${current.position(next)} of ${current.lines.length}`);
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
        aria-label="Find in log"
        spellCheck={false}
        onChange={event => setFind(event.target.value)}
        onKeyDown={onKey}
      />
      <span className={classes.hits} data-none={(find !== "" && matches === 0) || undefined}>
        {find === ""
          ? ""
          : position > 0
            ? `${grouped(position)} of ${grouped(matches)}`
            : matches === 0
              ? "no matches"
              : `${grouped(matches)} lines`}
      </span>
      <button
        type="button"
        className="button"
        aria-label="Previous match"
        disabled={matches === 0}
        onClick={() => go(-1)}
      >
        ↑
      </button>
      <button
        type="button"
        className="button"
        aria-label="Next match"
        disabled={matches === 0}
        onClick={() => go(1)}
      >
        ↓
      </button>
    </search>
  );
}

/** Field to go to a line by its number; the keyboard equivalent of clicking a line number. */
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
  const requested = /^\d{1,9}$/.test(typed) ? Number(typed) : null;
  return (
    <form
      className={classes.group}
      onSubmit={event => {
        event.preventDefault();
        if (requested !== null && requested >= 1) onLine(Math.min(requested, Math.max(last, 1)));
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
