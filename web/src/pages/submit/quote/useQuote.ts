import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError } from "@/api/problem";
import { quoteQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { Quote, SubmissionRequest } from "@/api/types";
import type { Mistake } from "../draft/faults";

const PAUSE_MS = 350;
/** A quote needs to know that there is a series, and not all of a large one; what is in it is inspected once. */
const ENOUGH_OF_AN_MBOX = 200_000;

export interface LiveQuote {
  quote: Quote | undefined;
  /** It is for this very request. */
  current: boolean;
  /** Quotes are for those who are signed in. */
  visitor: boolean;
  error: Error | null;
  mistakes: readonly Mistake[];
  /** Names the request. */
  key: string;
}

/** The server's quote for the request, a moment after it changed last. */
export function useQuote(request: SubmissionRequest, mboxKey: string): LiveQuote {
  const key = JSON.stringify(request.series?.mbox ? { ...request, series: mboxKey } : request);
  const [asked, setAsked] = useState({ request, key });
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ request, key }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [request, key]);

  const visitor = useIsVisitor();
  const enabled = asked.request.targets.length > 0 && !visitor;
  const { data, error, isPlaceholderData } = useQuery({
    ...quoteQuery(shortened(asked.request), asked.key),
    enabled,
  });
  const current = enabled && asked.key === key && !isPlaceholderData;
  const refused = error instanceof ApiError ? (error.problem.errors ?? []).filter(isMistake) : [];
  return {
    quote: enabled ? data : undefined,
    current,
    visitor,
    error: enabled ? error : null,
    mistakes: refused.length > 0 ? refused : enabled ? (data?.errors ?? []) : [],
    key,
  };
}

/** Known not to be signed in: what only those may ask who are is not asked. */
export function useIsVisitor(): boolean {
  const session = useSession();
  return session !== null && !session.user;
}

function shortened(request: SubmissionRequest): SubmissionRequest {
  const text = request.series?.mbox?.text;
  if (text === undefined || text.length <= ENOUGH_OF_AN_MBOX) return request;
  return { ...request, series: { mbox: { text: text.slice(0, ENOUGH_OF_AN_MBOX) } } };
}

export function isMistake(error: Record<string, string>): error is Record<string, string> & Mistake {
  return error.pointer !== undefined && error.detail !== undefined;
}

/** Tells texts apart (53 bits, cyrb53); no protection against anybody. */
export function fingerprint(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return `${text.length}-${(4294967296 * (2097151 & b) + (a >>> 0)).toString(36)}`;
}
