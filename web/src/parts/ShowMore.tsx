import { count } from "@/lib/numbers";

/** Button that shows the `hidden` scenarios and settings that a section leaves out at first; nothing if there are none. */
export function ShowMore({ hidden, onShow }: { hidden: number; onShow: () => void }) {
  if (hidden <= 0) return null;
  return (
    <p className="no-print">
      <button type="button" className="button" onClick={onShow}>
        {count(hidden, "more scenario or setting", "more scenarios and settings")}
      </button>
    </p>
  );
}
