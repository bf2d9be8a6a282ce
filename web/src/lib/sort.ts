/** A table's sort order as a search parameter: a column's id, with `-` for descending; empty for the default order. */
export interface SortOrder {
  id: string;
  desc: boolean;
}

/** Parse the search parameter; null for the default order. */
export function parseSort(text: string): SortOrder | null {
  if (text === "" || text === "-") return null;
  return text.startsWith("-") ? { id: text.slice(1), desc: true } : { id: text, desc: false };
}

/** Format the sort order as a search parameter. */
export function formatSort(sort: SortOrder | null): string {
  return sort ? `${sort.desc ? "-" : ""}${sort.id}` : "";
}
