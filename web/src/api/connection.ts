/**
 * Connection state. Derived from the requests and streams themselves, because a lab is often on a private network that
 * `navigator.onLine` does not describe.
 */
import { useSyncExternalStore } from "react";

const MIN_PROBE_INTERVAL_MS = 2000;
const MAX_PROBE_INTERVAL_MS = 30_000;

export interface Connection {
  /** When the lab stopped answering; null while it is reachable. */
  unreachableSince: Date | null;
}

let connection: Connection = { unreachableSince: null };
let probeTimer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();
const reconnectListeners = new Set<() => void>();

function update(next: Connection) {
  connection = next;
  for (const listener of listeners) listener();
}

/** Record that the lab did not answer, and probe it until it does. */
export function markUnreachable(): void {
  if (connection.unreachableSince === null) update({ unreachableSince: new Date() });
  if (probeTimer === undefined) scheduleProbe(MIN_PROBE_INTERVAL_MS);
}

/** Record that the lab answered, and notify the reconnect listeners if it was unreachable. */
export function markReachable(): void {
  clearTimeout(probeTimer);
  probeTimer = undefined;
  if (connection.unreachableSince === null) return;
  update({ unreachableSince: null });
  for (const listener of reconnectListeners) listener();
}

/** Call `listener` each time the lab becomes reachable again. Returns the function that unsubscribes. */
export function onReconnect(listener: () => void): () => void {
  reconnectListeners.add(listener);
  return () => reconnectListeners.delete(listener);
}

/** Request the session once, as each page does, and return true if the lab answered. */
export async function probe(): Promise<boolean> {
  try {
    const response = await fetch("/api/v1/session", { cache: "no-store" });
    if (response.ok) markReachable();
    else markUnreachable();
    return response.ok;
  } catch {
    markUnreachable();
    return false;
  }
}

function scheduleProbe(waitMs: number) {
  probeTimer = setTimeout(async () => {
    await probe();
    if (connection.unreachableSince !== null) scheduleProbe(Math.min(MAX_PROBE_INTERVAL_MS, waitMs * 1.6));
  }, waitMs);
}

if (typeof window !== "undefined") {
  window.addEventListener("online", () => {
    if (connection.unreachableSince !== null) void probe();
  });
}

/** The connection state, for components. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => connection,
  );
}
