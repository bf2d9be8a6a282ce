import { Component, lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import classes from "./figures.module.css";
import type { PlotDrawingProps } from "./PlotDrawing";

const PlotDrawing = lazy(() => import("./PlotDrawing"));
/** Drawn shortly before one scrolls to it. */
const NEAR = "600px";

/**
 * A drawing by Observable Plot, which is loaded and runs only when the reader comes near it or prints. Its room is there
 * from the start; what it shows is in the table behind it, so a drawing that cannot be loaded takes nothing away.
 */
export function LazyPlot(props: PlotDrawingProps) {
  const place = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);

  useEffect(() => {
    const element = place.current;
    if (!element || near) return;
    const come = () => setNear(true);
    const observer = new IntersectionObserver(
      entries => entries.some(each => each.isIntersecting) && come(),
      {
        rootMargin: NEAR,
      },
    );
    observer.observe(element);
    // The sheet is taken as it is when this event has been handled: nothing may be left for later.
    const print = () => flushSync(come);
    window.addEventListener("beforeprint", print);
    return () => {
      observer.disconnect();
      window.removeEventListener("beforeprint", print);
    };
  }, [near]);

  return (
    <div ref={place} className={classes.room} style={{ minHeight: props.height }}>
      {near && (
        <NotLoaded>
          <Suspense fallback={<div aria-busy="true" />}>
            <PlotDrawing {...props} />
          </Suspense>
        </NotLoaded>
      )}
    </div>
  );
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
