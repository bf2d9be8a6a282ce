import { useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";

/**
 * Scroll to the element that the URL's hash names once it is rendered; the router tries before the page's data is
 * loaded. With `only`, only if the hash equals `only`.
 */
export function useScrollToHash(only?: string) {
  const hash = useRouterState({ select: state => state.location.hash });
  useEffect(() => {
    if (!hash || (only !== undefined && only !== hash)) return;
    const found = document.getElementById(hash);
    if (found instanceof HTMLDetailsElement) found.open = true;
    found?.scrollIntoView();
  }, [hash, only]);
}
