import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ApiError } from "@/api/problem";
import { quoteQuery } from "@/api/queries";
import { useSession } from "@/api/session";
import type { Quote, SubmissionRequest } from "@/api/types";
import type { RequestError } from "../draft/fieldErrors";

const PAUSE_MS = 350;
/**
 * A quote does not depend on the contents of the mbox, so a prefix is enough; the contents are inspected separately.
 */
const MBOX_PREFIX_LENGTH = 200_000;

export interface LiveQuote {
  quote: Quote | undefined;
  /** True if the quote is for the current request. */
  current: boolean;
  /** True if visitors of the lab may not read anything. */
  signedOut: boolean;
  error: Error | null;
  errors: readonly RequestError[];
  /** Identifies the request. */
  key: string;
}

/** Fetch the server's quote for the request, debounced. */
export function useQuote(request: SubmissionRequest, mboxKey: string): LiveQuote {
  const key = JSON.stringify(request.series?.mbox ? { ...request, series: mboxKey } : request);
  const [debounced, setDebounced] = useState({ request, key });
  useEffect(() => {
    const timer = setTimeout(() => setDebounced({ request, key }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [request, key]);

  const signedOut = useIsSignedOut();
  const enabled = debounced.request.targets.length > 0 && !signedOut;
  const { data, error, isPlaceholderData } = useQuery({
    ...quoteQuery(truncateMbox(debounced.request), debounced.key),
    enabled,
  });
  const current = enabled && debounced.key === key && !isPlaceholderData;
  const rejected = error instanceof ApiError ? (error.problem.errors ?? []).filter(isRequestError) : [];
  return {
    quote: enabled ? data : undefined,
    current,
    signedOut,
    error: enabled ? error : null,
    errors: rejected.length > 0 ? rejected : enabled ? (data?.errors ?? []) : [],
    key,
  };
}

/** Return true if the session is loaded and may not read: it gets no quotes and proposals. */
export function useIsSignedOut(): boolean {
  const session = useSession();
  return session !== null && !session.user && !session.public_reading;
}

function truncateMbox(request: SubmissionRequest): SubmissionRequest {
  const text = request.series?.mbox?.text;
  if (text === undefined || text.length <= MBOX_PREFIX_LENGTH) return request;
  return { ...request, series: { mbox: { text: text.slice(0, MBOX_PREFIX_LENGTH) } } };
}

export function isRequestError(
  error: Record<string, string>,
): error is Record<string, string> & RequestError {
  return error.pointer !== undefined && error.detail !== undefined;
}

/** Hash a text (53-bit cyrb53, not cryptographic). */
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
