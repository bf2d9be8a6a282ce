import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { deviceTypesQuery, plansQuery, treesQuery } from "@/api/queries";
import { spoken } from "@/lib/words";
import classes from "./Filters.module.css";
import { OUTCOMES, STATES, type submissionsSearch } from "./route";

type Search = typeof submissionsSearch.defaults;
const TYPING_MS = 300;

/** Each change is in the address at once; what is typed, when the typing pauses. */
export function Filters({ search }: { search: Search }) {
  const navigate = useNavigate({ from: "/submissions" });
  const set = (change: Partial<Search>, replace = false) =>
    void navigate({ to: ".", search: before => ({ ...before, ...change, cursor: "" }), replace });
  const trees = useQuery(treesQuery).data?.map(each => each.tree.name);
  const plans = useQuery(plansQuery).data?.map(each => each.plan.name);
  const types = useQuery(deviceTypesQuery).data?.map(each => each.name);
  const any = Object.entries(search).some(([name, value]) => name !== "cursor" && value !== "");

  return (
    <search className={classes.filters}>
      <Typed
        name="q"
        label="Search"
        hint="title, owner or number"
        value={search.q}
        onValue={q => set({ q }, true)}
      />
      <Chosen label="State" value={search.state} from={STATES} onValue={state => set({ state })} />
      <Chosen label="Outcome" value={search.outcome} from={OUTCOMES} onValue={outcome => set({ outcome })} />
      <Chosen label="Tree" value={search.tree} from={trees} onValue={tree => set({ tree })} />
      <Chosen label="Plan" value={search.plan} from={plans} onValue={plan => set({ plan })} />
      <Chosen
        label="Device type"
        value={search.device_type}
        from={types}
        onValue={device_type => set({ device_type })}
      />
      <Typed name="owner" label="Owner" value={search.owner} onValue={owner => set({ owner }, true)} />
      <Day label="From" value={search.since} onValue={since => set({ since })} />
      <Day label="To" value={search.until} onValue={until => set({ until })} />
      {any && (
        <Link to="/submissions" className={classes.clear}>
          Clear
        </Link>
      )}
    </search>
  );
}

interface FieldProps<T extends string> {
  label: string;
  value: T;
  onValue(value: T): void;
}

function Chosen<T extends string>({
  label,
  value,
  from,
  onValue,
}: FieldProps<T> & { from: readonly T[] | undefined }) {
  // What the address says is offered even before the list is there, or when it is no longer in it.
  const known = from ?? [];
  const options = value === "" || known.includes(value) ? known : [value, ...known];
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <select className={classes.control} value={value} onChange={event => onValue(event.target.value as T)}>
        <option value="">any</option>
        {options.map(option => (
          <option key={option} value={option}>
            {spoken(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Typed({ name, label, hint, value, onValue }: FieldProps<string> & { name: string; hint?: string }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed.trim() === value) return;
    const timer = setTimeout(() => onValue(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  });
  return (
    <label className={classes.field} data-wide={hint !== undefined || undefined}>
      <span>{label}</span>
      <input
        className={classes.control}
        type="search"
        name={name}
        placeholder={hint}
        value={typed}
        onChange={event => setTyped(event.target.value)}
      />
    </label>
  );
}

function Day({ label, value, onValue }: FieldProps<string>) {
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <input
        className={classes.control}
        type="date"
        value={value}
        onChange={event => onValue(event.target.value)}
      />
    </label>
  );
}
