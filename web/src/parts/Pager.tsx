import type { Paged } from "@/api/paged";
import { Button } from "@/kit";
import { grouped } from "@/lib/numbers";

/** Pagination controls. Renders nothing if there is only one page. */
export function Pager({ paged, shown, total }: { paged: Paged; shown: number; total: number }) {
  if (!paged.newer && !paged.older) return null;
  const range =
    paged.first === null
      ? ""
      : `${grouped(paged.first)} to ${grouped(paged.first + shown - 1)} of ${grouped(total)}`;
  return (
    <nav className="row" aria-label="Pagination">
      <Button variant="default" size="xs" disabled={!paged.newer} onClick={() => paged.newer?.()}>
        Newer
      </Button>
      <Button variant="default" size="xs" disabled={!paged.older} onClick={() => paged.older?.()}>
        Older
      </Button>
      <span className="muted">{range}</span>
    </nav>
  );
}
