import type { CSSProperties, ReactNode, Ref } from "react";

interface ScrollProps {
  /** Accessible name. */
  name: string;
  className?: string | undefined;
  style?: CSSProperties | undefined;
  ref?: Ref<HTMLDivElement>;
  children: ReactNode;
}

/** Scrollable box with a name and a tab stop, so that its content can be reached by keyboard. */
export function Scroll({ name, className, style, ref, children }: ScrollProps) {
  return (
    // A group, not a region: a page with twenty tables would have twenty landmarks.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form controls
    <div role="group" aria-label={name} className={className} style={style} ref={ref} tabIndex={0}>
      {children}
    </div>
  );
}
