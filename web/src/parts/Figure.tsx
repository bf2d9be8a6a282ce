import { type ReactNode, useId } from "react";
import classes from "./Figure.module.css";

interface FigureProps {
  title: ReactNode;
  /** Content of the drawing and how to read it; the figure's accessible description. */
  description: ReactNode;
  /** The drawing: an SVG, hidden from screen readers, which read title, description and table. */
  children: ReactNode;
  /** The drawing itself is a control with a name, and is not hidden. */
  interactive?: boolean;
  /** The data of the drawing: a DataTable. */
  table: ReactNode;
  /** Controls of the drawing; not printed. */
  controls?: ReactNode;
}

/** An accessible, printable figure: title, drawing, description and data table. */
export function Figure({ title, description, children, interactive, table, controls }: FigureProps) {
  const id = useId();
  return (
    <figure className={classes.figure} aria-labelledby={`${id}-title`} aria-describedby={`${id}-text`}>
      <div className={classes.head}>
        <strong id={`${id}-title`}>{title}</strong>
        {controls && <div className="row no-print">{controls}</div>}
      </div>
      <div className={classes.drawing} aria-hidden={interactive ? undefined : "true"}>
        {children}
      </div>
      <figcaption className={classes.text} id={`${id}-text`}>
        {description}
      </figcaption>
      <details className={classes.data}>
        <summary>Show data</summary>
        {table}
      </details>
    </figure>
  );
}
