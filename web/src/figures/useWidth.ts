import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** Return a ref and the width of its element in CSS pixels, updated on resize; 0 before it is measured. */
export function useWidth<Of extends HTMLElement>(): [RefObject<Of | null>, number] {
  const ref = useRef<Of>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    setWidth(Math.floor(element.clientWidth));
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
