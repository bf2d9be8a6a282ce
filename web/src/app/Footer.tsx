import { Link } from "@tanstack/react-router";
import classes from "./Footer.module.css";

export function Footer() {
  return (
    <footer className={`${classes.footer} no-print`}>
      <div className={classes.bar}>
        <span>wqlab: a test lab for Linux workqueue and scheduler patches</span>
        <nav aria-label="More" className={classes.links}>
          <Link to="/plans">What is measured</Link>
          <a href="/openapi.json">REST API</a>
          <a href="/readyz">Health</a>
        </nav>
      </div>
    </footer>
  );
}
