import { useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";

/**
 * Shows the part of the page that the address names, once it is there: the router looks for it before the page's data
 * have come. Without `only` any part, otherwise this one.
 */
export function useHashPlace(only?: string) {
  const hash = useRouterState({ select: state => state.location.hash });
  useEffect(() => {
    if (hash && (only === undefined || only === hash)) document.getElementById(hash)?.scrollIntoView();
  }, [hash, only]);
}
