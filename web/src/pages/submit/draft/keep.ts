/**
 * What keeps the form over sign-in and reload. The address holds the form (route.ts); this holds the mbox, which no
 * address could, and the last keystrokes before the address had them.
 */
import type { Draft } from "./draft";

export interface Mbox {
  /** Of the file; empty for pasted text. */
  name: string;
  text: string;
}

interface Kept {
  draft: Draft;
  /** The form as the address had it when `draft` was kept. */
  address: string;
}

const DRAFT = "wqlab.submit.draft";
const MBOX = "wqlab.submit.mbox";

// Going to another page and back keeps even what is too large for the browser's store.
let mbox: Mbox | null | undefined;

export function keepDraft(draft: Draft, address: string): void {
  store(DRAFT, { draft, address } satisfies Kept);
}

export function forgetDraft(): void {
  sessionStorage.removeItem(DRAFT);
}

/** The form to begin with: what was being typed when the address was as it is now, or when it says nothing. */
export function keptDraft(address: string, empty: string): Draft | null {
  const kept = read<Kept>(DRAFT);
  return kept && (address === kept.address || address === empty) ? kept.draft : null;
}

/** False when the browser has no room for it: it then lasts until the page is reloaded. */
export function keepMbox(next: Mbox | null): boolean {
  mbox = next;
  if (next === null) {
    sessionStorage.removeItem(MBOX);
    return true;
  }
  return store(MBOX, next);
}

export function keptMbox(): Mbox | null {
  if (mbox === undefined) mbox = read<Mbox>(MBOX);
  return mbox;
}

function store(key: string, value: unknown): boolean {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    sessionStorage.removeItem(key);
    return false;
  }
}

function read<T>(key: string): T | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") as T | null;
  } catch {
    return null;
  }
}
