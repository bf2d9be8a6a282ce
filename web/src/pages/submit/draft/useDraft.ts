import { getRouteApi, type SearchSchemaInput } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { decodeMbox } from "@/api/queries";
import { submitSearch } from "../search";
import type { Draft, Mbox } from "./draft";
import { loadDraft, loadMbox, saveDraft, saveMbox } from "./draftStorage";

const route = getRouteApi("/submit");
/** Browsers limit how often a page may change its URL. */
const PAUSE_MS = 300;

const addressOf = (draft: Draft) =>
  JSON.stringify(submitSearch.validateSearch(draft as Draft & SearchSchemaInput));
const EMPTY = addressOf(submitSearch.defaults);

/**
 * State of the form, kept in the URL and in session storage. Changes replace the history entry, so Back leaves the
 * form instead of undoing single inputs. A URL that changes otherwise (Back, a link) replaces the form.
 */
export function useDraft() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const address = addressOf(search);
  const [draft, setDraft] = useState(() => loadDraft(address, EMPTY) ?? search);
  const known = useRef(address);
  const latest = useRef(draft);

  useEffect(() => {
    if (address === known.current) return;
    known.current = address;
    latest.current = search;
    setDraft(search);
  }, [address, search]);

  useEffect(() => {
    const next = addressOf(draft);
    if (next === known.current) return;
    const timer = setTimeout(() => {
      // During navigation this page stays mounted until the next one is ready; do not navigate back to it.
      if (location.pathname !== route.id) return;
      known.current = next;
      saveDraft(latest.current, next);
      void navigate({ to: ".", search: latest.current, replace: true, resetScroll: false });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft, navigate]);

  const change = useCallback((next: Partial<Draft> | ((before: Draft) => Draft)) => {
    const before = latest.current;
    latest.current = typeof next === "function" ? next(before) : { ...before, ...next };
    saveDraft(latest.current, known.current);
    setDraft(latest.current);
  }, []);
  return [draft, change] as const;
}

export type ChangeDraft = ReturnType<typeof useDraft>[1];

export interface MboxState {
  mbox: Mbox | null;
  /** True if the mbox survives a reload. */
  persistent: boolean;
  /** Why the last file was rejected. */
  problem: string | undefined;
  load(file: File): void;
  change(next: Mbox | null): void;
}

/** Size limit of the server (`MboxSeries.text`); larger files are not read. */
const MAX_MBOX_BYTES = 20_000_000;

export function useMbox(): MboxState {
  const [mbox, setMbox] = useState(loadMbox);
  const [persistent, setPersistent] = useState(true);
  const [problem, setProblem] = useState<string>();
  const change = useCallback((next: Mbox | null) => {
    setProblem(undefined);
    setPersistent(saveMbox(next));
    setMbox(next);
  }, []);
  const load = useCallback(
    (file: File) => {
      void readText(file).then(
        text => change({ name: file.name, text }),
        (error: Error) => setProblem(error.message),
      );
    },
    [change],
  );
  return { mbox, persistent, problem, load, change };
}

/** Read a file as UTF-8. Of any other file, the lab reads each mail in its own character set. */
async function readText(file: File): Promise<string> {
  if (file.size > MAX_MBOX_BYTES)
    throw new Error(`${file.name} is too large: the limit for an mbox is 20 MB.`);
  let data: ArrayBuffer;
  try {
    data = await file.arrayBuffer();
  } catch {
    throw new Error(`${file.name} could not be read. Select a file, not a folder.`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return decodeMbox(data).catch((error: Error) => {
      throw new Error(`${file.name}: ${error.message}`);
    });
  }
}
