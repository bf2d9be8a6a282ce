/** Observable Plot as a component. Import it only with `lazy()`: it is half the size of the rest of the code. */
import * as Plot from "@observablehq/plot";
import { useLayoutEffect } from "react";
import { useWidth } from "./useWidth";

export interface PlotDrawingProps {
  /** Return the plot options for a width in CSS pixels. Must be stable (`useCallback`): a change redraws the figure. */
  draw(width: number, plot: typeof Plot): Plot.PlotOptions;
  /** Height to reserve before the figure is drawn. */
  height: number;
}

export default function PlotDrawing({ draw, height }: PlotDrawingProps) {
  const [container, width] = useWidth<HTMLDivElement>();

  // A layout effect, because printing does not wait for passive effects.
  useLayoutEffect(() => {
    const element = container.current;
    if (!element || width === 0) return;
    const drawn = Plot.plot({
      width,
      style: { background: "none", color: "currentColor", fontFamily: "inherit", fontSize: "12px" },
      ...draw(width, Plot),
    });
    for (const style of drawn.querySelectorAll("style")) {
      adoptOnce(style.textContent ?? "");
      style.remove();
    }
    element.replaceChildren(drawn);
    return () => drawn.remove();
  }, [draw, container, width]);

  return <div ref={container} style={{ minHeight: height }} />;
}

const adopted = new Set<string>();

/**
 * Adopt Plot's style rules once for all figures: they are the same in each. The content security policy refuses `style`
 * elements but allows style sheets that a script constructs.
 */
function adoptOnce(css: string) {
  if (adopted.has(css)) return;
  adopted.add(css);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
}
