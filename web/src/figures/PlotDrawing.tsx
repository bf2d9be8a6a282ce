/** Observable Plot as a component. Import it by `lazy()` only: it is half as large as everything else together. */
import * as Plot from "@observablehq/plot";
import { useLayoutEffect } from "react";
import { adoptSheet } from "@/lib/adoptedStyles";
import { useWidth } from "./useWidth";

export interface PlotDrawingProps {
  /** The figure for a width in CSS pixels; keep it stable (`useCallback`), it is drawn again whenever it changes. */
  draw(width: number, plot: typeof Plot): Plot.PlotOptions;
  /** Its height before it is drawn: nothing may move when it comes. */
  height: number;
}

export default function PlotDrawing({ draw, height }: PlotDrawingProps) {
  const [place, width] = useWidth<HTMLDivElement>();

  // Not an effect for later: who prints takes the page as it is when it has its width.
  useLayoutEffect(() => {
    const element = place.current;
    if (!element || width === 0) return;
    const drawn = Plot.plot({
      width,
      style: { background: "none", color: "currentColor", fontFamily: "inherit", fontSize: "12px" },
      ...draw(width, Plot),
    });
    for (const style of drawn.querySelectorAll("style")) {
      share(style.textContent ?? "");
      style.remove();
    }
    element.replaceChildren(drawn);
    return () => drawn.remove();
  }, [draw, place, width]);

  return <div ref={place} style={{ minHeight: height }} />;
}

const shared = new Set<string>();

/** Plot's own rules are the same in every figure: one sheet for all of them. */
function share(css: string) {
  if (shared.has(css)) return;
  shared.add(css);
  adoptSheet(css);
}
