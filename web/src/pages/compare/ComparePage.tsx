/** Two sides beside each other: kernels of submissions, heads of a tree, settings or devices. */
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import fields from "@/parts/FilterBar.module.css";
import { Page } from "@/parts/Page";
import classes from "./ComparePage.module.css";
import { SidesResult } from "./SidesResult";

const route = getRouteApi("/compare");

export function ComparePage() {
  const { left, right } = route.useSearch();
  return (
    <Page
      title={left && right ? `Compare ${left} with ${right}` : "Compare"}
      lead="Two kernels, heads of a tree, settings or devices. Only the verdicts of the submissions themselves are verdicts."
    >
      <Sides key={`${left} ${right}`} left={left} right={right} />
      {left && right && left !== right && <SidesResult left={left} right={right} />}
    </Page>
  );
}

function Sides({ left, right }: { left: string; right: string }) {
  const navigate = useNavigate({ from: "/compare" });
  const go = (sides: { left: string; right: string }) =>
    void navigate({ to: ".", search: before => ({ ...before, ...sides }) });
  const compare = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const [one = "", other = ""] = ["left", "right"].map(name => String(given.get(name)).trim());
    go({ left: one, right: other });
  };
  return (
    <form className={`${fields.bar} no-print`} onSubmit={compare}>
      <Field name="left" label="Left" value={left} />
      <Field name="right" label="Right" value={right} />
      <button type="submit" className="button">
        Compare
      </button>
      {left && right && (
        <button type="button" className="button" onClick={() => go({ left: right, right: left })}>
          Swap
        </button>
      )}
      {left !== "" && left === right && <p className={classes.wrong}>Both sides are the same.</p>}
      <p className={classes.help}>
        A side is a kernel of a submission, <code>12:baseline</code>, or <code>12</code> for its candidate; or
        a head of a watched tree, <code>linux-next@1f2e3d4c5b6a</code>. Narrow it with <code>;plan=</code>,{" "}
        <code>;device_type=</code>, <code>;device=</code> or <code>;setting=</code>.
      </p>
    </form>
  );
}

function Field({ name, label, value }: { name: string; label: string; value: string }) {
  return (
    <label className={fields.field}>
      <span>{label}</span>
      <input
        name={name}
        required
        defaultValue={value}
        autoComplete="off"
        maxLength={500}
        placeholder="12 or 12:candidate"
        size={30}
      />
    </label>
  );
}
