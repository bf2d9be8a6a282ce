import { Link } from "@tanstack/react-router";
import { useHasScope } from "@/api/session";
import type { NewBisection } from "./search";

/** A link to the form that begins a bisection, filled in; nothing for those who may not submit. */
export function BisectLink({ of, children = "Bisect" }: { of: Partial<NewBisection>; children?: string }) {
  const may = useHasScope();
  if (!may("submit")) return null;
  return (
    <Link to="/bisections/new" search={of}>
      {children}
    </Link>
  );
}
