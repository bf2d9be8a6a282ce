import classes from "./Footer.module.css";

/** Page footer: project name and links. `/docs/`, `/openapi.json` and `/readyz` are outside the client-side app. */
export function Footer() {
  return (
    <footer className={`${classes.footer} no-print`}>
      <div className={classes.bar}>
        <span>wqlab: a test lab for Linux workqueue and scheduler patches</span>
        <nav aria-label="Footer" className={classes.links}>
          <a href="/docs/">Documentation</a>
          <a href="/docs/api/">API</a>
          <a href="/readyz">Status</a>
        </nav>
      </div>
    </footer>
  );
}
