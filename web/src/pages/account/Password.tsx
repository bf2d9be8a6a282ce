import { type FormEvent, useState } from "react";
import { useChangePassword } from "@/api/session";
import { toast } from "@/app/toasts";
import { Button, PasswordInput } from "@/kit";
import { FormError } from "@/parts/FormError";
import classes from "./Account.module.css";

const SHORTEST = 12;

export function Password({ name }: { name: string }) {
  const change = useChangePassword();
  const [differ, setDiffer] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    const [old, fresh, again] = ["old", "new", "again"].map(field => String(given.get(field)));
    setDiffer(fresh !== again);
    if (old === undefined || fresh === undefined || fresh !== again) return;
    change.mutate(
      { old_password: old, new_password: fresh },
      {
        onSuccess: () => {
          form.reset();
          toast({ text: "The password is changed. Your other browsers are signed out." });
        },
      },
    );
  };
  const shared = { required: true, withAsterisk: false };
  return (
    <form className={classes.narrow} onSubmit={submit}>
      <FormError error={change.error} />
      {/* A password manager must know whose password it is. */}
      <input type="text" name="username" autoComplete="username" value={name} readOnly hidden />
      <PasswordInput
        {...shared}
        name="old"
        label="Password now"
        autoComplete="current-password"
        visibilityToggleButtonProps={{ "aria-label": "Show the password" }}
      />
      <PasswordInput
        {...shared}
        name="new"
        label="New password"
        description={`At least ${SHORTEST} characters`}
        minLength={SHORTEST}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ "aria-label": "Show the new password" }}
      />
      <PasswordInput
        {...shared}
        name="again"
        label="New password again"
        error={differ ? "The two differ" : undefined}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ "aria-label": "Show the new password again" }}
      />
      <Button type="submit" loading={change.isPending}>
        Change the password
      </Button>
    </form>
  );
}
