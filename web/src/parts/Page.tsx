import type { ReactNode } from "react";
import classes from "./Page.module.css";

interface PageProps {
  /** In the tab and in history; also the heading unless `heading` says it otherwise. */
  title: string;
  heading?: ReactNode;
  /** One or two sentences under the heading. */
  lead?: ReactNode;
  /** Where this page belongs: links, the outermost first. */
  trail?: ReactNode;
  /** Buttons and links that act on the whole page. */
  actions?: ReactNode;
  children?: ReactNode;
}

/** A page's frame: its title, its one h1, and its parts in a column. */
export function Page({ title, heading, lead, trail, actions, children }: PageProps) {
  return (
    <article className={classes.page}>
      <title>{`${title} · wqlab`}</title>
      <header className={classes.head}>
        {trail && (
          <nav className={classes.trail} aria-label="Above this page">
            {trail}
          </nav>
        )}
        <div className={classes.top}>
          <h1 className={classes.heading}>{heading ?? title}</h1>
          {actions && <div className={`${classes.actions} no-print`}>{actions}</div>}
        </div>
        {lead && <div className={classes.lead}>{lead}</div>}
      </header>
      {children}
    </article>
  );
}

interface SectionProps {
  title: ReactNode;
  /** Its address on the page: `#id`. */
  id?: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A part of a page under an h2. */
export function Section({ title, id, lead, actions, children }: SectionProps) {
  return (
    <section className={classes.section} id={id} aria-labelledby={id && `${id}-title`}>
      <div className={classes.top}>
        <h2 id={id && `${id}-title`}>{title}</h2>
        {actions && <div className={`${classes.actions} no-print`}>{actions}</div>}
      </div>
      {lead && <div className={classes.lead}>{lead}</div>}
      {children}
    </section>
  );
}
