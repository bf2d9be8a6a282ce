import { useEffect, useRef, useState } from "react";
import type { View } from "./view";

/** A held arrow key changes the view many times a second; browsers limit how often the URL may change. */
const WRITE_MS = 200;

/**
 * The view of a chart, kept in the URL: changes are shown at once and written a moment later. After navigation to
 * another page nothing is written, because that would navigate back: a page stays mounted until the next one is ready.
 */
export function useView(inUrl: View, write: (view: View) => void): [View, (view: View) => void] {
  const [view, setView] = useState(inUrl);
  const known = useRef(keyOf(inUrl));
  const writing = useRef(write);
  const page = useRef(location.pathname);
  writing.current = write;
  const urlKey = keyOf(inUrl);

  // Adopt what a link or the history has changed, but not what was written here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has all of the view
  useEffect(() => {
    if (urlKey === known.current) return;
    known.current = urlKey;
    setView(inUrl);
  }, [urlKey]);

  useEffect(() => {
    if (keyOf(view) === known.current) return;
    const timer = setTimeout(() => {
      if (location.pathname !== page.current) return;
      known.current = keyOf(view);
      writing.current(view);
    }, WRITE_MS);
    return () => clearTimeout(timer);
  }, [view]);

  return [view, setView];
}

function keyOf({ from, to, at }: View): string {
  return `${from} ${to} ${at}`;
}
