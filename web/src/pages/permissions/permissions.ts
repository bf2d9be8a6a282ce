/** Operations by group, and who may use them. */
import type { OperationPermission } from "@/api/types";

/** Return the operations by group, in the server's order; without `all` only those that change something. */
export function byGroup(
  operations: readonly OperationPermission[],
  all: boolean,
): [string, OperationPermission[]][] {
  const groups = new Map<string, OperationPermission[]>();
  for (const each of operations) {
    if (!all && each.method === "GET") continue;
    groups.set(each.group, [...(groups.get(each.group) ?? []), each]);
  }
  return [...groups];
}

/** `create_webhook` as `create webhook`. */
export function nameOf({ operation }: OperationPermission): string {
  return operation.replaceAll("_", " ");
}

/** A description without line breaks and marks of code. */
export function plain(description: string): string {
  return description.replaceAll("`", "").split(/\s+/).join(" ").trim();
}
