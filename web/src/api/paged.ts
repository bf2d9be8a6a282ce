/**
 * Cursor pagination of lists, newest first. The cursor is in the URL, so a page can be linked; the cursors of the
 * previous pages are in the history entry, so that "Newer" returns to them.
 */
import { useNavigate, useRouterState } from "@tanstack/react-router";

declare module "@tanstack/react-router" {
  interface HistoryState {
    /** Cursors of the pages before this one; "" is the first page. */
    trail?: string[];
  }
}

export interface Page<T> {
  items: T[];
  total: number;
  next?: string | null;
}

export interface Paged {
  /** Go to older entries; null on the last page. */
  older: (() => void) | null;
  /** Go to the previous page, or to the newest if it is not known; null on the first page. */
  newer: (() => void) | null;
  /** Number of the first entry shown, from 1; null on a page opened by a link. */
  first: number | null;
}

/** Pagination for the `cursor` search parameter of the current route. `page` is the server's response for `cursor`. */
export function usePaged(cursor: string, page: Page<unknown> | undefined, size: number): Paged {
  const navigate = useNavigate();
  const trail = useRouterState({ select: state => state.location.state.trail });
  const goTo = (target: string, trailAfter: string[]) => () =>
    void navigate({
      to: ".",
      search: ((search: Record<string, unknown>) => ({ ...search, cursor: target })) as never,
      state: state => ({ ...state, trail: trailAfter }),
    });
  const next = page?.next;
  return {
    older: next ? goTo(next, [...(trail ?? []), cursor]) : null,
    newer: cursor === "" ? null : goTo(trail?.at(-1) ?? "", (trail ?? []).slice(0, -1)),
    first: cursor === "" ? 1 : trail ? trail.length * size + 1 : null,
  };
}
