import { getRouteApi, type SearchSchemaInput } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";
import { submitSearch } from "../route";
import type { Draft } from "./draft";
import { keepDraft, keepMbox, keptDraft, keptMbox, type Mbox } from "./keep";

const route = getRouteApi("/submit");
/** Browsers refuse a page that writes its address at every keystroke. */
const PAUSE_MS = 300;

const addressOf = (draft: Draft) =>
  JSON.stringify(submitSearch.validateSearch(draft as Draft & SearchSchemaInput));
const EMPTY = addressOf(submitSearch.defaults);

/**
 * The form, kept in the address and in the tab. It replaces the history entry always: Back leaves a form, it does not
 * undo its boxes one by one. An address that changes by other means (Back, a link) is taken over.
 */
export function useDraft() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const address = addressOf(search);
  const [draft, setDraft] = useState(() => keptDraft(address, EMPTY) ?? search);
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
      // On the way to another page this one is still shown until that is there: it must not call the reader back.
      if (location.pathname !== route.id) return;
      known.current = next;
      keepDraft(latest.current, next);
      void navigate({ to: ".", search: latest.current, replace: true, resetScroll: false });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft, navigate]);

  const change = useCallback((next: Partial<Draft> | ((before: Draft) => Draft)) => {
    const before = latest.current;
    latest.current = typeof next === "function" ? next(before) : { ...before, ...next };
    keepDraft(latest.current, known.current);
    setDraft(latest.current);
  }, []);
  return [draft, change] as const;
}

export type ChangeDraft = ReturnType<typeof useDraft>[1];

export interface MboxState {
  mbox: Mbox | null;
  /** It would outlast a reload of the page. */
  lasting: boolean;
  /** Why the last file was not taken. */
  problem: string | undefined;
  take(file: File): void;
  change(next: Mbox | null): void;
}

/** What the server takes at most (`MboxSeries.text`); a larger file need not be read at all. */
const LARGEST = 20_000_000;

export function useMbox(): MboxState {
  const [mbox, setMbox] = useState(keptMbox);
  const [lasting, setLasting] = useState(true);
  const [problem, setProblem] = useState<string>();
  const change = useCallback((next: Mbox | null) => {
    setProblem(undefined);
    setLasting(keepMbox(next));
    setMbox(next);
  }, []);
  const take = useCallback(
    (file: File) => {
      void textOf(file).then(
        text => change({ name: file.name, text }),
        (error: Error) => setProblem(error.message),
      );
    },
    [change],
  );
  return { mbox, lasting, problem, take, change };
}

/** A patch is never altered: what is not UTF-8 is refused, as `wqlab submit` does. */
async function textOf(file: File): Promise<string> {
  if (file.size > LARGEST) throw new Error(`${file.name} is too large: an mbox has at most 20 MB.`);
  let data: ArrayBuffer;
  try {
    data = await file.arrayBuffer();
  } catch {
    throw new Error(`${file.name} could not be read; a folder is no mbox.`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    throw new Error(`${file.name} is not UTF-8 text; write it with git format-patch --stdout.`);
  }
}
