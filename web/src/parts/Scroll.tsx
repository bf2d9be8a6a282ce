import type { CSSProperties, ReactNode, Ref } from "react";

interface ScrollProps {
  /** What it holds, for those who land on it by keyboard. */
  name: string;
  className?: string | undefined;
  style?: CSSProperties | undefined;
  ref?: Ref<HTMLDivElement>;
  children: ReactNode;
}

/** A box that may scroll: it has a name and can be focused, or its hidden part could not be reached by keyboard. */
export function Scroll({ name, className, style, ref, children }: ScrollProps) {
  return (
    // A group and no region: a page with twenty tables would have twenty landmarks.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form's controls
    <div role="group" aria-label={name} className={className} style={style} ref={ref} tabIndex={0}>
      {children}
    </div>
  );
}
