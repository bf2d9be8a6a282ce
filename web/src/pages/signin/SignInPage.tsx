import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type FormEvent, useEffect } from "react";
import { providerQuery, sessionQuery, useSignIn } from "@/api/session";
import { Button, PasswordInput, TextInput } from "@/kit";
import { safeRedirectPath } from "@/lib/redirect";
import { FormError } from "@/parts/FormError";
import { Page } from "@/parts/Page";
import classes from "./SignInPage.module.css";

const route = getRouteApi("/sign-in");

export function SignInPage() {
  const next = safeRedirectPath(route.useSearch().next);
  const router = useRouter();
  const { data: session } = useQuery(sessionQuery);
  const signIn = useSignIn();

  // Leave the page if the user is already signed in, also in another tab.
  useEffect(() => {
    if (session?.user) router.history.replace(next);
  }, [session, next, router]);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    signIn.mutate({ name: String(form.get("name")).trim(), password: String(form.get("password")) });
  };

  return (
    <Page
      title="Sign in"
      lead={
        session?.public_reading
          ? "You can browse without an account. Sign in to submit."
          : "Sign in to use this lab."
      }
    >
      {session?.provider && <ProviderButton label={session.provider} next={next} />}
      <form className={classes.form} onSubmit={submit}>
        <FormError error={signIn.error} />
        <TextInput
          name="name"
          label="User name"
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          withAsterisk={false}
        />
        <PasswordInput
          name="password"
          label="Password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          visibilityToggleButtonProps={{ "aria-label": "Show password" }}
        />
        <Button type="submit" loading={signIn.isPending} disabled={session === undefined}>
          Sign in
        </Button>
      </form>
      <p className="muted">
        {session?.provider ? "Accounts with a password" : "Accounts"} are created by the lab's administrators.{" "}
        <code>make demo</code> and <code>make up</code> print the first administrator's password once, when
        they start a new lab.
      </p>
    </Page>
  );
}

/** Longest path that the server returns to (`next` of /session/oidc/login). */
const NEXT_LENGTH = 1500;

/** Link to the lab's OpenID provider. The page is left, because the provider shows its own. */
function ProviderButton({ label, next }: { label: string; next: string }) {
  const { data: provider, isPending } = useQuery(providerQuery);
  const problem = provider?.problem;
  const search = new URLSearchParams(next.length <= NEXT_LENGTH ? { next } : {});
  return (
    <div className={classes.provider} aria-busy={isPending}>
      {problem ? (
        <p role="status">
          <strong>{label}</strong> does not work now: {problem}. Sign in with a password, or try again later.
        </p>
      ) : isPending ? (
        <Button disabled>{label}</Button>
      ) : (
        <Button component="a" href={`/api/v1/session/oidc/login?${search}`}>
          {label}
        </Button>
      )}
      <p className="muted">Or with a password of this lab:</p>
    </div>
  );
}
