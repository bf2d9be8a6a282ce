/**
 * Pages of a list that the server cuts, newest first, by cursor. The cursor is in the address, so a page can be linked;
 * the cursors of the pages before it are in the history entry, so "newer" leads back the way one came.
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
  /** Leads to older entries; null on the last page. */
  older: (() => void) | null;
  /** Leads to the page one came from, or the newest; null on the first page. */
  newer: (() => void) | null;
  /** Number of the first entry shown, from 1; null on a page that was reached by a link. */
  first: number | null;
}

/** `cursor`: the address's; `page`: what the server answered for it. Works on the `cursor` parameter of the current route. */
export function usePaged(cursor: string, page: Page<unknown> | undefined, size: number): Paged {
  const navigate = useNavigate();
  const trail = useRouterState({ select: state => state.location.state.trail });
  const to = (target: string, trailAfter: string[]) => () =>
    void navigate({
      to: ".",
      search: ((search: Record<string, unknown>) => ({ ...search, cursor: target })) as never,
      state: state => ({ ...state, trail: trailAfter }),
    });
  const next = page?.next;
  return {
    older: next ? to(next, [...(trail ?? []), cursor]) : null,
    newer: cursor === "" ? null : to(trail?.at(-1) ?? "", (trail ?? []).slice(0, -1)),
    first: cursor === "" ? 1 : trail ? trail.length * size + 1 : null,
  };
}
