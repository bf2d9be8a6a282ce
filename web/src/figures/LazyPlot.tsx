import {
  Component,
  type ComponentType,
  lazy,
  type ReactNode,
  Suspense,
  useEffect,
  useRef,
  useState,
} from "react";
import { flushSync } from "react-dom";
import classes from "./figures.module.css";
import type { PlotDrawingProps } from "./PlotDrawing";

type Drawing = ComponentType<PlotDrawingProps>;

let loading: Promise<{ default: Drawing }> | null = null;
/** The component once it is loaded: `lazy` suspends at least once, but printing cannot wait. */
let loaded: Drawing | null = null;

function load(): Promise<{ default: Drawing }> {
  loading ??= import("./PlotDrawing").then(
    module => {
      loaded = module.default;
      return module;
    },
    (error: unknown) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}

const LazyDrawing = lazy(load);
/** Return the loaded component, or the lazy one. */
const currentDrawing = (): Drawing => loaded ?? LazyDrawing;
/** Distance from the viewport at which a figure is drawn. */
const ROOT_MARGIN = "600px";
/** Plot is loaded at the latest after this time even without scrolling, for printing. */
const IDLE_MS = 3000;

/**
 * A drawing by Observable Plot. Plot is loaded when the browser is idle, and the drawing is made when it is near the
 * viewport or the page is printed. Its space is reserved. The figure's table has the same data, and replaces the
 * drawing in print if Plot could not be loaded.
 */
export function LazyPlot(props: PlotDrawingProps) {
  const container = useRef<HTMLDivElement>(null);
  const [Drawn, setDrawn] = useState<Drawing | null>(null);

  useEffect(
    () =>
      whenIdle(() => {
        // Loading is retried when the figure is near the viewport; the error is shown there.
        load().catch(() => undefined);
      }),
    [],
  );

  useEffect(() => {
    const element = container.current;
    if (!element || Drawn) return;
    const observer = new IntersectionObserver(
      entries => entries.some(each => each.isIntersecting) && setDrawn(currentDrawing),
      {
        rootMargin: ROOT_MARGIN,
      },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [Drawn]);

  useEffect(() => {
    // The page is printed as it is when this event has been handled, so render a loaded drawing synchronously.
    const print = () => flushSync(() => setDrawn(currentDrawing));
    window.addEventListener("beforeprint", print);
    return () => window.removeEventListener("beforeprint", print);
  }, []);

  return (
    <div ref={container} className={classes.placeholder} style={{ minHeight: props.height }} data-plot>
      {Drawn && (
        <DrawingErrorBoundary>
          <Suspense fallback={<div aria-busy="true" />}>
            <Drawn {...props} />
          </Suspense>
        </DrawingErrorBoundary>
      )}
    </div>
  );
}

/** Call `act` when the browser is idle. Returns the function that cancels the call. */
function whenIdle(act: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const handle = requestIdleCallback(act, { timeout: IDLE_MS });
    return () => cancelIdleCallback(handle);
  }
  const timer = setTimeout(act, IDLE_MS);
  return () => clearTimeout(timer);
}

/** Error boundary that shows a note if the drawing cannot be loaded. */
class DrawingErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return <p className="muted">The figure could not be loaded. Its data are below.</p>;
  }
}
