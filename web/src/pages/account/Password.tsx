import { type FormEvent, useState } from "react";
import { useChangePassword } from "@/api/session";
import { toast } from "@/app/toasts";
import { Button, PasswordInput } from "@/kit";
import { FormError } from "@/parts/FormError";
import classes from "./Account.module.css";

const MIN_LENGTH = 12;

export function Password({ name }: { name: string }) {
  const change = useChangePassword();
  const [differ, setDiffer] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const [old, fresh, again] = ["old", "new", "again"].map(field => String(data.get(field)));
    setDiffer(fresh !== again);
    if (old === undefined || fresh === undefined || fresh !== again) return;
    change.mutate(
      { old_password: old, new_password: fresh },
      {
        onSuccess: () => {
          form.reset();
          toast({ text: "Password changed. You are signed out of all other browsers." });
        },
      },
    );
  };
  const shared = { required: true, withAsterisk: false };
  return (
    <form className={classes.narrow} onSubmit={submit}>
      <FormError error={change.error} />
      {/* Password managers need the user name. */}
      <input type="text" name="username" autoComplete="username" value={name} readOnly hidden />
      <PasswordInput
        {...shared}
        name="old"
        label="Current password"
        autoComplete="current-password"
        visibilityToggleButtonProps={{ "aria-label": "Show current password" }}
      />
      <PasswordInput
        {...shared}
        name="new"
        label="New password"
        description={`At least ${MIN_LENGTH} characters`}
        minLength={MIN_LENGTH}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ "aria-label": "Show new password" }}
      />
      <PasswordInput
        {...shared}
        name="again"
        label="Confirm new password"
        error={differ ? "The passwords do not match." : undefined}
        autoComplete="new-password"
        visibilityToggleButtonProps={{ "aria-label": "Show password confirmation" }}
      />
      <Button type="submit" loading={change.isPending}>
        Change password
      </Button>
    </form>
  );
}
