import { Link } from "@tanstack/react-router";
import type { ComponentProps, ReactNode } from "react";
import { type Page, usePaged } from "@/api/paged";
import { DataTable } from "./DataTable";
import { EmptyState } from "./EmptyState";
import { Pager } from "./Pager";
import { Skeleton } from "./Skeleton";

interface PagedTableProps<Row extends object>
  extends Omit<ComponentProps<typeof DataTable<Row>>, "rows" | "captionHidden" | "fixedOrder" | "narrow"> {
  /** Response for `cursor`; undefined until it is loaded. */
  page: Page<Row> | undefined;
  /** Search parameter of the current route. */
  cursor: string;
  /** Most entries of a page. */
  size: number;
  /** Lines of the skeleton. */
  lines?: number;
  /** Shown instead of a table without rows. */
  none?: ReactNode;
  /** Text that is shown instead if filters are set. */
  unmatched?: string;
}

/** One page of a list in the server's order, with its pagination. */
export function PagedTable<Row extends object>({
  page,
  cursor,
  size,
  lines = 8,
  none,
  unmatched = "",
  ...table
}: PagedTableProps<Row>) {
  const paged = usePaged(cursor, page, size);
  const isEmpty = page?.items.length === 0 && none !== undefined;
  return (
    <>
      {!page && <Skeleton lines={lines} height="1.8rem" />}
      {isEmpty &&
        (unmatched ? <EmptyState title={unmatched} action={<Link to=".">Clear all filters</Link>} /> : none)}
      {page && !isEmpty && <DataTable {...table} captionHidden rows={page.items} fixedOrder narrow="stack" />}
      <Pager paged={paged} shown={page?.items.length ?? 0} total={page?.total ?? 0} />
    </>
  );
}
