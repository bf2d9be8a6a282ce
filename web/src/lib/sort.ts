/** A table's order in an address: a column's id, `-` before it for the largest first; empty for the given order. */
export interface SortOrder {
  id: string;
  desc: boolean;
}

export function readSort(text: string): SortOrder | null {
  if (text === "" || text === "-") return null;
  return text.startsWith("-") ? { id: text.slice(1), desc: true } : { id: text, desc: false };
}

export function sortText(sort: SortOrder | null): string {
  return sort ? `${sort.desc ? "-" : ""}${sort.id}` : "";
}
