import type { CSSProperties } from "react";
import classes from "./Skeleton.module.css";

interface SkeletonProps {
  width?: string;
  height?: string;
  lines?: number;
}

/** Holds the room that something will take, so that nothing moves when it comes. Hidden from screen readers: say it once. */
export function Skeleton({ width = "100%", height = "1.1rem", lines = 1 }: SkeletonProps) {
  const style = { "--width": width, "--height": height } as CSSProperties;
  return (
    <div className={classes.lines} style={style} aria-hidden="true">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <div className={classes.line} key={line} />
      ))}
    </div>
  );
}
