import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { namesQuery } from "@/api/queries";
import { humanize, VERDICT_ORDER } from "@/lib/words";
import { useDebouncedText } from "@/parts/useDebouncedText";
import classes from "./Filters.module.css";
import { filtersOf, type ListSearch, SORTS, STATE_CHOICES } from "./search";

const SORT_WORDS: Record<(typeof SORTS)[number], string> = {
  newest: "Newest first",
  oldest: "Oldest first",
  ended: "Recently finished",
  priority: "Priority",
  title: "Title",
  owner: "Owner",
  tree: "Tree",
};

/** Filter bar. Selections update the URL immediately, typed text after a pause. */
export function Filters({ search }: { search: ListSearch }) {
  const navigate = useNavigate({ from: "/submissions" });
  const [open, setOpen] = useState(false);
  const set = (change: Partial<ListSearch>, replace = false) =>
    void navigate({ to: ".", search: before => ({ ...before, ...change, cursor: "" }), replace });
  const names = useQuery(namesQuery).data;
  const { q: _q, ...others } = filtersOf(search);
  const used = Object.keys(others).length;

  return (
    <search className={classes.filters} data-open={open}>
      <Typed
        name="q"
        label="Search"
        hint="Title, author, owner or ID"
        value={search.q}
        onValue={q => set({ q }, true)}
      />
      <button type="button" className={classes.more} aria-expanded={open} onClick={() => setOpen(!open)}>
        Filters{used > 0 && ` (${used})`}
      </button>
      <Chosen label="State" value={search.state} from={STATE_CHOICES} onValue={state => set({ state })} />
      <Chosen
        label="Verdict"
        value={search.verdict}
        from={VERDICT_ORDER}
        onValue={verdict => set({ verdict })}
      />
      <Chosen
        label="Device type"
        value={search.device_type}
        from={names?.device_types}
        onValue={device_type => set({ device_type })}
      />
      <Chosen
        label="Plan"
        value={search.plan}
        from={names && Object.keys(names.plans)}
        onValue={plan => set({ plan })}
      />
      <Chosen label="Tree" value={search.tree} from={names?.trees} onValue={tree => set({ tree })} />
      <Typed name="author" label="Author" value={search.author} onValue={author => set({ author }, true)} />
      <Typed name="owner" label="Owner" value={search.owner} onValue={owner => set({ owner }, true)} />
      <Day label="From" value={search.since} onValue={since => set({ since })} />
      <Day label="To" value={search.until} onValue={until => set({ until })} />
      <label className={classes.field}>
        <span>Sort by</span>
        <select
          className={classes.control}
          value={search.sort}
          onChange={event => set({ sort: event.target.value as ListSearch["sort"] })}
        >
          {SORTS.map(sort => (
            <option key={sort} value={sort}>
              {SORT_WORDS[sort]}
            </option>
          ))}
        </select>
      </label>
      <Link
        to="/submissions"
        className={classes.clear}
        data-idle={used === 0 && search.q === ""}
        disabled={used === 0 && search.q === ""}
      >
        Clear
      </Link>
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
}: FieldProps<T | ""> & { from: readonly T[] | undefined }) {
  // Include the current value even if the list is not loaded or no longer contains it.
  const known: readonly T[] = from ?? [];
  const options = value === "" || known.includes(value) ? known : [value, ...known];
  return (
    <label className={classes.field}>
      <span>{label}</span>
      <select
        className={classes.control}
        value={value}
        onChange={event => onValue(event.target.value as T | "")}
      >
        <option value="">Any</option>
        {options.map(option => (
          <option key={option} value={option}>
            {humanize(option)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Typed({ name, label, hint, value, onValue }: FieldProps<string> & { name: string; hint?: string }) {
  const [typed, setTyped] = useDebouncedText(value, onValue, text => text.trim());
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
