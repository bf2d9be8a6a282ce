/**
 * Page visibility: run streams only in visible tabs. A browser opens at most six HTTP/1.1 connections to a server over
 * all its tabs, so a few background tabs that follow a run each would leave none for the page in front.
 */

/** How long a tab may be hidden before its streams stop, so that switching tabs briefly does not reconnect. */
export const GRACE_MS = 15_000;

/** Call `start` when the page is visible, and the function it returned after the page was hidden for `GRACE_MS`. */
export function whileVisible(start: () => () => void): () => void {
  let stop: (() => void) | undefined;
  let stopTimer: ReturnType<typeof setTimeout> | undefined;

  function end() {
    clearTimeout(stopTimer);
    stop?.();
    stop = undefined;
  }
  function onVisibilityChange() {
    clearTimeout(stopTimer);
    if (document.hidden) stopTimer = setTimeout(end, GRACE_MS);
    else stop ??= start();
  }

  onVisibilityChange();
  document.addEventListener("visibilitychange", onVisibilityChange);
  return () => {
    document.removeEventListener("visibilitychange", onVisibilityChange);
    end();
  };
}
