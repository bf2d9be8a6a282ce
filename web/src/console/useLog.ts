import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Log } from "./log";
import { Search } from "./search";
import { openConsole } from "./stream";

/** A boot's console, live; null until the effect has run. */
export function useConsole(runId: number, bootId: number): Log | null {
  const [opened, setOpened] = useState<{ bootId: number; log: Log } | null>(null);
  useEffect(() => {
    const { log, close } = openConsole(runId, bootId);
    setOpened({ bootId, log });
    return close;
  }, [runId, bootId]);
  return opened?.bootId === bootId ? opened.log : null;
}

/** Renders again when the log has changed; the number grows with each change. */
export function useLogVersion(log: Log): number {
  return useSyncExternalStore(
    listener => log.subscribe(listener),
    () => log.version,
  );
}

/** The lines of the log that hold `query`, kept true as it grows. */
export function useSearchOf(log: Log, query: string): Search {
  useLogVersion(log);
  return useMemo(() => new Search(log, query), [log, query]).advance();
}
