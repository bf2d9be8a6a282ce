import { type ReactNode, useId } from "react";
import classes from "./Figure.module.css";

interface FigureProps {
  title: ReactNode;
  /** What is drawn and how to read it; becomes the drawing's description. */
  description: ReactNode;
  /** The drawing: an SVG, hidden from screen readers, which get title, description and table. */
  children: ReactNode;
  /** The figures behind the drawing: a DataTable. */
  table: ReactNode;
  /** Controls that change what is drawn; not printed. */
  controls?: ReactNode;
}

/** A figure that can be read without seeing it and on paper: title, drawing, description, and the data behind it. */
export function Figure({ title, description, children, table, controls }: FigureProps) {
  const id = useId();
  return (
    <figure className={classes.figure} aria-labelledby={`${id}-title`} aria-describedby={`${id}-text`}>
      <div className={classes.head}>
        <strong id={`${id}-title`}>{title}</strong>
        {controls && <div className="row no-print">{controls}</div>}
      </div>
      <div className={classes.drawing} aria-hidden="true">
        {children}
      </div>
      <figcaption className={classes.text} id={`${id}-text`}>
        {description}
      </figcaption>
      <details className={classes.data}>
        <summary>Data of this figure</summary>
        {table}
      </details>
    </figure>
  );
}
