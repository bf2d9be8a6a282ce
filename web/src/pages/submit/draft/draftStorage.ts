/**
 * Session storage for the form, to survive sign-in and reload. The URL holds most fields (search.ts); this module
 * holds the mbox, which is too large for a URL, and input that is not in the URL yet.
 */
import type { Draft, Mbox } from "./draft";

interface SavedDraft {
  draft: Draft;
  /** The form in the URL when `draft` was saved. */
  address: string;
}

const DRAFT = "wqlab.submit.draft";
const MBOX = "wqlab.submit.mbox";

// In memory as well: navigation within the app keeps an mbox that exceeds the storage quota.
let mbox: Mbox | null | undefined;

export function saveDraft(draft: Draft, address: string): void {
  store(DRAFT, { draft, address } satisfies SavedDraft);
}

export function clearDraft(): void {
  sessionStorage.removeItem(DRAFT);
}

/** Return the saved form if the URL is unchanged or empty, and null otherwise. */
export function loadDraft(address: string, empty: string): Draft | null {
  const saved = read<SavedDraft>(DRAFT);
  return saved && (address === saved.address || address === empty) ? saved.draft : null;
}

/** Save the mbox. Returns false if it exceeds the storage quota; it is then lost on reload. */
export function saveMbox(next: Mbox | null): boolean {
  mbox = next;
  if (next === null) {
    sessionStorage.removeItem(MBOX);
    return true;
  }
  return store(MBOX, next);
}

export function loadMbox(): Mbox | null {
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
