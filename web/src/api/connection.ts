/**
 * Whether the lab answers. Learned from requests and streams themselves: a lab often lives in a network that the
 * browser's own idea of being online knows nothing of.
 */
import { useSyncExternalStore } from "react";

const FIRST_PROBE_MS = 2000;
const SLOWEST_PROBE_MS = 30_000;

export interface Connection {
  /** When contact was lost; null while there is contact. */
  lostAt: Date | null;
}

let now: Connection = { lostAt: null };
let probing: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();
const onRegained = new Set<() => void>();

function set(next: Connection) {
  now = next;
  for (const listener of listeners) listener();
}

/** The lab did not answer. Asks for it until it does. */
export function contactLost(): void {
  if (now.lostAt === null) set({ lostAt: new Date() });
  if (probing === undefined) schedule(FIRST_PROBE_MS);
}

export function contactMade(): void {
  clearTimeout(probing);
  probing = undefined;
  if (now.lostAt === null) return;
  set({ lostAt: null });
  for (const listener of onRegained) listener();
}

/** Calls back each time contact is regained; returns how to stop that. */
export function whenRegained(listener: () => void): () => void {
  onRegained.add(listener);
  return () => onRegained.delete(listener);
}

/** Asks whether the lab is there, now. */
export async function probe(): Promise<boolean> {
  try {
    const answer = await fetch("/healthz", { cache: "no-store" });
    if (answer.ok) contactMade();
    else contactLost();
    return answer.ok;
  } catch {
    contactLost();
    return false;
  }
}

function schedule(wait: number) {
  probing = setTimeout(async () => {
    await probe();
    if (now.lostAt !== null) schedule(Math.min(SLOWEST_PROBE_MS, wait * 1.6));
  }, wait);
}

if (typeof window !== "undefined") {
  window.addEventListener("online", () => {
    if (now.lostAt !== null) void probe();
  });
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );
}
