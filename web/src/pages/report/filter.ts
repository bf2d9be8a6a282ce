/** Filters of the table of comparisons. */
import type { Cell } from "./model";
import type { ReportSearch } from "./search";

export type Filter = Pick<
  ReportSearch,
  "q" | "topology" | "scenario" | "metric" | "question" | "role" | "evidence" | "verdict"
>;

/** Return the comparisons that match all filters. Every word of `q` must occur in the names or the reason. */
export function filterCells(cells: readonly Cell[], filter: Filter): Cell[] {
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  return cells.filter(({ of }) => {
    if (filter.topology && of.device_type !== filter.topology) return false;
    if (filter.scenario && of.scenario !== filter.scenario) return false;
    if (filter.metric && of.metric !== filter.metric) return false;
    if (filter.question && of.question !== filter.question) return false;
    if (filter.role && of.role !== filter.role) return false;
    if (filter.evidence && of.evidence !== filter.evidence) return false;
    if (filter.verdict.length > 0 && (of.verdict === null || !filter.verdict.includes(of.verdict)))
      return false;
    if (words.length === 0) return true;
    const names =
      `${of.plan} ${of.device_type} ${of.scenario} ${of.setting} ${of.metric} ${of.reason}`.toLowerCase();
    return words.every(word => names.includes(word));
  });
}

export function isFiltered(search: Filter): boolean {
  const { q, topology, scenario, metric, question, role, evidence, verdict } = search;
  return verdict.length > 0 || [q, topology, scenario, metric, question, role, evidence].some(Boolean);
}
