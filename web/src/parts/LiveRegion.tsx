import { useSyncExternalStore } from "react";

let message = "";
const listeners = new Set<() => void>();

/** Announce a message to screen readers, for changes that the user did not trigger directly: a run finished. */
export function announce(text: string): void {
  // Screen readers announce a repeated message only if the text differs.
  message = message === text ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

/** The live region for `announce`. Rendered once, in the shell. */
export function LiveRegion() {
  const text = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => message,
  );
  return (
    <div className="hidden-visually" role="status" aria-live="polite">
      {text}
    </div>
  );
}
