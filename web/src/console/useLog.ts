import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { Log } from "./log";
import { Search } from "./search";
import { openConsole } from "./stream";

/** Return the live console of a boot; null until the effect has run. */
export function useConsole(runId: number, bootId: number): Log | null {
  const [opened, setOpened] = useState<{ bootId: number; log: Log } | null>(null);
  useEffect(() => {
    const { log, close } = openConsole(runId, bootId);
    setOpened({ bootId, log });
    return close;
  }, [runId, bootId]);
  return opened?.bootId === bootId ? opened.log : null;
}

/** Render again when the log changes. Returns its version. */
export function useLogVersion(log: Log): number {
  return useSyncExternalStore(
    listener => log.subscribe(listener),
    () => log.version,
  );
}

/** Return the matches of `query` in the log, updated as it grows. */
export function useSearchOf(log: Log, query: string): Search {
  useLogVersion(log);
  return useMemo(() => new Search(log, query), [log, query]).advance();
}
