import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** An element's width in CSS pixels, also when it changes; 0 before it is known. */
export function useWidth<Of extends HTMLElement>(): [RefObject<Of | null>, number] {
  const place = useRef<Of>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    setWidth(Math.floor(element.clientWidth));
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [place, width];
}
