import { useSyncExternalStore } from "react";

let said = "";
const listeners = new Set<() => void>();

/** Has a screen reader say it, politely. For what changed without the reader's doing: a run ended, rows were filtered. */
export function announce(text: string): void {
  // The same sentence twice is two announcements only when the text differs.
  said = said === text ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

/** Once per page, in the shell. */
export function LiveRegion() {
  const text = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => said,
  );
  return (
    <div className="hidden-visually" role="status" aria-live="polite">
      {text}
    </div>
  );
}
