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
/** Known once it is loaded: what `lazy` makes waits at least once, and a sheet of paper waits for nothing. */
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

const WhenLoaded = lazy(load);
/** What one draws with now. */
const newest = (): Drawing => loaded ?? WhenLoaded;
/** Drawn shortly before one scrolls to it. */
const NEAR = "600px";
/** Loaded at the latest so long after the page is there, whether one scrolls or not: it may be printed. */
const IDLE_MS = 3000;

/**
 * A drawing by Observable Plot, which is loaded when the page has nothing else to do, and runs only when the reader comes
 * near it or prints. Its room is there from the start; what it shows is in the table behind it, so a drawing that cannot
 * be loaded takes nothing away, and a page printed before it was has the table in its place.
 */
export function LazyPlot(props: PlotDrawingProps) {
  const place = useRef<HTMLDivElement>(null);
  const [Drawn, setDrawn] = useState<Drawing | null>(null);

  useEffect(
    () =>
      whenIdle(() => {
        // Whoever comes near asks again, and is told what went wrong.
        load().catch(() => undefined);
      }),
    [],
  );

  useEffect(() => {
    const element = place.current;
    if (!element || Drawn) return;
    const observer = new IntersectionObserver(
      entries => entries.some(each => each.isIntersecting) && setDrawn(newest),
      {
        rootMargin: NEAR,
      },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [Drawn]);

  useEffect(() => {
    // The sheet is taken as it is when this event has been handled: nothing may be left for later, and a drawing that has
    // come but waits for React to show it is put in its place at once.
    const print = () => flushSync(() => setDrawn(newest));
    window.addEventListener("beforeprint", print);
    return () => window.removeEventListener("beforeprint", print);
  }, []);

  return (
    <div ref={place} className={classes.room} style={{ minHeight: props.height }} data-plot>
      {Drawn && (
        <NotLoaded>
          <Suspense fallback={<div aria-busy="true" />}>
            <Drawn {...props} />
          </Suspense>
        </NotLoaded>
      )}
    </div>
  );
}

/** Returns what calls it off. */
function whenIdle(act: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const asked = requestIdleCallback(act, { timeout: IDLE_MS });
    return () => cancelIdleCallback(asked);
  }
  const timer = setTimeout(act, IDLE_MS);
  return () => clearTimeout(timer);
}

class NotLoaded extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return <p className="muted">The drawing could not be loaded. Its data are below.</p>;
  }
}
