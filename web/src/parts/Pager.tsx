import type { Paged } from "@/api/paged";
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
      <button type="button" className="button" disabled={!paged.newer} onClick={() => paged.newer?.()}>
        Newer
      </button>
      <button type="button" className="button" disabled={!paged.older} onClick={() => paged.older?.()}>
        Older
      </button>
      <span className="muted">{range}</span>
    </nav>
  );
}
