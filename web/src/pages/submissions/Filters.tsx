import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { namesQuery } from "@/api/queries";
import { humanize, VERDICT_ORDER } from "@/lib/words";
import { DayFilter, FilterBar, SelectFilter, TextFilter } from "@/parts/FilterBar";
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
  const set = (change: Partial<ListSearch>, replace = false) =>
    void navigate({ to: ".", search: before => ({ ...before, ...change, cursor: "" }), replace });
  const names = useQuery(namesQuery).data;
  const used = Object.keys(filtersOf(search)).length;
  return (
    <FilterBar used={used}>
      <TextFilter
        label="Search"
        hint="Title, author, owner or ID"
        value={search.q}
        onValue={q => set({ q }, true)}
      />
      <SelectFilter
        label="State"
        value={search.state}
        from={STATE_CHOICES}
        name={humanize}
        onValue={state => set({ state })}
      />
      <SelectFilter
        label="Verdict"
        value={search.verdict}
        from={VERDICT_ORDER}
        name={humanize}
        onValue={verdict => set({ verdict })}
      />
      <SelectFilter
        label="Device type"
        value={search.device_type}
        from={names?.device_types}
        onValue={device_type => set({ device_type })}
      />
      <SelectFilter
        label="Plan"
        value={search.plan}
        from={names && Object.keys(names.plans)}
        onValue={plan => set({ plan })}
      />
      <SelectFilter label="Tree" value={search.tree} from={names?.trees} onValue={tree => set({ tree })} />
      <TextFilter label="Author" value={search.author} onValue={author => set({ author }, true)} />
      <TextFilter label="Owner" value={search.owner} onValue={owner => set({ owner }, true)} />
      <DayFilter label="From" value={search.since} onValue={since => set({ since })} />
      <DayFilter label="To" value={search.until} onValue={until => set({ until })} />
      <SelectFilter
        label="Sort by"
        value={search.sort}
        from={SORTS}
        name={sort => SORT_WORDS[sort]}
        any={false}
        onValue={sort => set({ sort: sort || "newest" })}
      />
      {used > 0 && <Link to="/submissions">Clear</Link>}
    </FilterBar>
  );
}
