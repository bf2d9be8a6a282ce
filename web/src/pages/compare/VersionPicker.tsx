import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { versionsQuery } from "@/api/queries";
import type { SubmissionVersion } from "@/api/types";
import { oneLine } from "@/lib/words";
import { announce } from "@/parts/LiveRegion";
import classes from "./VersionPicker.module.css";

/** Form to select two submissions by ID, with the series' versions as suggestions. */
export function VersionPicker({ first, second }: { first: number | null; second: number | null }) {
  const navigate = useNavigate({ from: "/compare" });
  const { data: versions } = useQuery({
    ...versionsQuery(first ?? second ?? 0),
    enabled: first !== null || second !== null,
  });
  const [invalid, setInvalid] = useState("");

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [a, b] = ["first", "second"].map(name => Number(String(form.get(name)).trim()));
    const problem =
      !Number.isInteger(a) || !Number.isInteger(b) || !a || !b
        ? "Enter two submission IDs."
        : a === b
          ? "Enter two different submission IDs."
          : "";
    setInvalid(problem);
    if (problem) announce(problem);
    else void navigate({ to: ".", search: before => ({ ...before, first: a ?? null, second: b ?? null }) });
  };
  return (
    <form className={`${classes.form} no-print`} onSubmit={submit}>
      <Field name="first" label="First" value={first} versions={versions} />
      <Field name="second" label="Second" value={second} versions={versions} />
      <button type="submit" className={classes.button}>
        Compare
      </button>
      {first !== null && second !== null && first !== second && (
        <button
          type="button"
          className={classes.button}
          onClick={() =>
            void navigate({ to: ".", search: before => ({ ...before, first: second, second: first }) })
          }
        >
          Swap
        </button>
      )}
      {(invalid || (first !== null && first === second)) && (
        <p className={classes.wrong} id="versions-error">
          {invalid || "Both IDs are the same. Enter two different submission IDs."}
        </p>
      )}
    </form>
  );
}

interface FieldProps {
  name: string;
  label: string;
  value: number | null;
  versions: readonly SubmissionVersion[] | undefined;
}

function Field({ name, label, value, versions }: FieldProps) {
  const id = `versions-${name}`;
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <input
        name={name}
        inputMode="numeric"
        pattern="[0-9]*"
        required
        defaultValue={value ?? ""}
        list={versions ? id : undefined}
        autoComplete="off"
        placeholder="ID"
      />
      {versions && (
        <datalist id={id}>
          {versions.map(of => (
            <option key={of.id} value={of.id}>
              {of.version === null ? "" : `v${of.version}: `}
              {oneLine(of.title)}
            </option>
          ))}
        </datalist>
      )}
    </label>
  );
}
