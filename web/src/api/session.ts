/** Who uses the page: the session, what it may do, signing in and out. */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { CSRF_HEADER, setCsrf } from "./client";
import { contactLost } from "./connection";
import { errorOf, Unreachable } from "./problem";

export type Scope = "read" | "submit" | "maintain" | "admin";
export type UserRole = "viewer" | "submitter" | "maintainer" | "admin";

export interface Session {
  user: { name: string; role: UserRole; scopes: Scope[] } | null;
  csrf_token: string | null;
  expires_at: string | null;
  /** Whether this lab may be read without signing in. */
  public_reading: boolean;
}

const PATH = "/api/v1/session";

async function call(
  method: "GET" | "POST" | "DELETE",
  body?: unknown,
  csrf?: string | null,
): Promise<Session | null> {
  let response: Response;
  try {
    response = await fetch(PATH, {
      method,
      credentials: "same-origin",
      headers: {
        Accept: "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(csrf ? { [CSRF_HEADER]: csrf } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    contactLost();
    throw new Unreachable(error);
  }
  const answer: unknown = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw errorOf(response, answer);
  return answer as Session | null;
}

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async () => {
    const session = (await call("GET")) as Session;
    setCsrf(session.csrf_token ?? "");
    return session;
  },
  staleTime: 60_000,
});

/** The session as far as it is known; `null` until the first answer. Never suspends: pages show before it is there. */
export function useSession(): Session | null {
  return useQuery(sessionQuery).data ?? null;
}

/** Whether the user may do what needs `scope`. The server decides all the same; this only hides what would be refused. */
export function useMay(): (scope: Scope) => boolean {
  const scopes = useSession()?.user?.scopes;
  return useCallback(scope => scopes?.includes(scope) ?? false, [scopes]);
}

export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (who: { name: string; password: string }) => call("POST", who),
    // Everything was read as somebody else.
    onSuccess: () => client.resetQueries(),
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call("DELETE", undefined, client.getQueryData(sessionQuery.queryKey)?.csrf_token),
    onSuccess: () => client.resetQueries(),
  });
}
