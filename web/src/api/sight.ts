/**
 * Streams only while somebody looks. A browser keeps six connections to a server that speaks HTTP/1.1, over all its
 * tabs: a few forgotten tabs that follow a run each would leave none for the page that is being read.
 */

/** How long a tab may be out of sight before it lets go: going back and forth between two costs nothing. */
export const GRACE_MS = 15_000;

/** Calls `start` when the page comes into sight, and what it returned once it has been out of sight for a while. */
export function whileInSight(start: () => () => void): () => void {
  let stop: (() => void) | undefined;
  let letGo: ReturnType<typeof setTimeout> | undefined;

  function end() {
    clearTimeout(letGo);
    stop?.();
    stop = undefined;
  }
  function look() {
    clearTimeout(letGo);
    if (document.hidden) letGo = setTimeout(end, GRACE_MS);
    else stop ??= start();
  }

  look();
  document.addEventListener("visibilitychange", look);
  return () => {
    document.removeEventListener("visibilitychange", look);
    end();
  };
}
