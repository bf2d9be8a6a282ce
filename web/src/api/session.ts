/** Who uses the page: the session, what it may do, signing in and out. */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, dataOf, setCsrf } from "./client";
import type { Scope, SessionView } from "./types";

/** Remembers what the next change must carry. */
function kept(session: SessionView): SessionView {
  setCsrf(session.csrf_token ?? "");
  return session;
}

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => kept(await dataOf(api.GET("/api/v1/session", { signal }))),
  staleTime: 60_000,
  // Another tab may have signed in or out.
  refetchOnWindowFocus: "always",
});

/** The session as far as it is known; `null` until the first answer. Never suspends: pages show before it is there. */
export function useSession(): SessionView | null {
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
    mutationFn: async (body: { name: string; password: string }) =>
      kept(await dataOf(api.POST("/api/v1/session", { body }))),
    // Everything was read as somebody else.
    onSuccess: () => client.resetQueries(),
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => api.DELETE("/api/v1/session"),
    onSuccess: () => client.resetQueries(),
  });
}

/** Other browsers of the user are signed out; this one goes on with a new session. */
export function useChangePassword() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (body: { old_password: string; new_password: string }) =>
      kept(await dataOf(api.PUT("/api/v1/session/password", { body }))),
    onSuccess: session => client.setQueryData(sessionQuery.queryKey, session),
  });
}
