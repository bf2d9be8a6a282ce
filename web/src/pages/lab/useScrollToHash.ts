import { useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";

/** Scroll to the element that the URL's hash names once it is rendered: the router tries before its data is loaded. */
export function useScrollToHash(id: string) {
  const hash = useRouterState({ select: state => state.location.hash });
  useEffect(() => {
    if (hash === id) document.getElementById(id)?.scrollIntoView();
  }, [hash, id]);
}
