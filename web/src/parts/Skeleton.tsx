import type { CSSProperties } from "react";
import classes from "./Skeleton.module.css";

interface SkeletonProps {
  width?: string;
  height?: string;
  lines?: number;
}

/** Placeholder of the final size while content loads. Hidden from screen readers. */
export function Skeleton({ width = "100%", height = "1.1rem", lines = 1 }: SkeletonProps) {
  const style = { "--width": width, "--height": height } as CSSProperties;
  return (
    <div className={classes.lines} style={style} aria-hidden="true">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: all lines are identical
        <div className={classes.line} key={line} />
      ))}
    </div>
  );
}
