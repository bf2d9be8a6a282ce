import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef } from "react";
import { sessionQuery, useSignIn } from "@/api/session";
import { Button, PasswordInput, TextInput } from "@/kit";
import { safeNext } from "@/lib/next";
import { Page } from "@/parts/Page";
import classes from "./SignInPage.module.css";

const route = getRouteApi("/sign-in");

export function SignInPage() {
  const next = safeNext(route.useSearch().next);
  const router = useRouter();
  const { data: session } = useQuery(sessionQuery);
  const signIn = useSignIn();
  const failure = useRef<HTMLParagraphElement>(null);

  // Signed in already, here or in another tab.
  useEffect(() => {
    if (session?.user) router.history.replace(next);
  }, [session, next, router]);

  useEffect(() => {
    if (signIn.isError) failure.current?.focus();
  }, [signIn.isError]);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    signIn.mutate({ name: String(form.get("name")).trim(), password: String(form.get("password")) });
  };

  return (
    <Page title="Sign in">
      <form className={classes.form} onSubmit={submit}>
        {signIn.isError && (
          <p className={classes.failure} role="alert" tabIndex={-1} ref={failure}>
            {signIn.error.message}
          </p>
        )}
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
          visibilityToggleButtonProps={{ "aria-label": "Show or hide the password" }}
        />
        <Button type="submit" loading={signIn.isPending}>
          Sign in
        </Button>
      </form>
      <p className="muted">
        An administrator of the lab makes accounts. <code>make demo</code> prints the first one when it starts
        a lab.
      </p>
    </Page>
  );
}
