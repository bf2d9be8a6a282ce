/** The browser session: user, scopes, sign-in and sign-out. */
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { api, dataOf, setCsrf } from "./client";
import type { Scope, SessionView } from "./types";

/** Store the session's CSRF token for the requests that follow, and return the session. */
function rememberCsrf(session: SessionView): SessionView {
  setCsrf(session.csrf_token ?? "");
  return session;
}

export const sessionQuery = queryOptions({
  throwOnError: false,
  queryKey: ["session"],
  queryFn: async ({ signal }) => rememberCsrf(await dataOf(api.GET("/api/v1/session", { signal }))),
  staleTime: 60_000,
  // Another tab may have signed in or out.
  refetchOnWindowFocus: "always",
});

/** The lab's OpenID provider, and whether it answers. Only for labs that have one. */
export const providerQuery = queryOptions({
  throwOnError: false,
  queryKey: ["provider"],
  queryFn: async ({ signal }) => dataOf(api.GET("/api/v1/session/oidc", { signal })),
  staleTime: 15_000,
});

/** The current session; null until it is loaded. Never suspends, so that pages render without it. */
export function useSession(): SessionView | null {
  return useQuery(sessionQuery).data ?? null;
}

/** Return a function that tests whether the user has a scope. Only hides controls: the server enforces scopes. */
export function useHasScope(): (scope: Scope) => boolean {
  const scopes = useSession()?.user?.scopes;
  return useCallback(scope => scopes?.includes(scope) ?? false, [scopes]);
}

export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (body: { name: string; password: string }) =>
      rememberCsrf(await dataOf(api.POST("/api/v1/session", { body }))),
    // All cached data belong to the previous user.
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

/** Change the password: other browsers of the user are signed out, this one gets a new session. */
export function useChangePassword() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (body: { old_password: string; new_password: string }) =>
      rememberCsrf(await dataOf(api.PUT("/api/v1/session/password", { body }))),
    onSuccess: session => client.setQueryData(sessionQuery.queryKey, session),
  });
}
