import type { ReactNode } from "react";
import { Boundary } from "./Boundary";
import classes from "./Page.module.css";

interface PageProps {
  /** Document title, and the heading unless `heading` is given. */
  title: string;
  heading?: ReactNode;
  /** One or two sentences under the heading. */
  lead?: ReactNode;
  /** Breadcrumb links, outermost first. */
  trail?: ReactNode;
  /** Buttons and links for the whole page. */
  actions?: ReactNode;
  children?: ReactNode;
}

/** Page frame: document title, h1 and content. */
export function Page({ title, heading, lead, trail, actions, children }: PageProps) {
  return (
    <article className={classes.page}>
      <title>{`${title} · wqlab`}</title>
      <header className={classes.head}>
        {trail && (
          <nav className={classes.trail} aria-label="Breadcrumb">
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
  /** Fragment of the section's URL: `#id`. */
  id?: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** Page section with an h2. */
export function Section({ title, id, lead, actions, children }: SectionProps) {
  return (
    <section className={classes.section} id={id} aria-labelledby={id && `${id}-title`}>
      <div className={classes.top}>
        <h2 id={id && `${id}-title`}>{title}</h2>
        {actions && <div className={`${classes.actions} no-print`}>{actions}</div>}
      </div>
      {lead && <div className={classes.lead}>{lead}</div>}
      <Boundary>{children}</Boundary>
    </section>
  );
}
