import { Link, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useSession } from "@/api/session";
import { AccountMenu } from "./AccountMenu";
import classes from "./Header.module.css";
import { ThemeToggle } from "./ThemeToggle";
import { useDismissOnOutsideEvent } from "./useDismissOnOutsideEvent";

/** Destinations, each with the pages that belong to it. Docs and the button are apart. */
const DESTINATIONS = [
  {
    name: "Results",
    pages: [
      { to: "/submissions", name: "Submissions" },
      { to: "/compare", name: "Compare" },
    ],
  },
  {
    name: "Trends",
    pages: [
      { to: "/history", name: "History" },
      { to: "/bisections", name: "Bisections" },
      { to: "/watches", name: "Watched trees" },
    ],
  },
  { name: "Lab", pages: [{ to: "/lab", name: "Lab" }] },
] as const;

export function Header() {
  const session = useSession();
  const [open, setOpen] = useState(false);
  const bar = useRef<HTMLElement>(null);
  const href = useRouterState({ select: state => state.location.href });
  const current = DESTINATIONS.find(
    ({ name, pages }) =>
      pages.some(({ to }) => href.startsWith(to)) || (name === "Results" && href.startsWith("/series")),
  );
  useDismissOnOutsideEvent(bar, open, () => setOpen(false));

  // Close the menu after navigation.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect runs when the address changes
  useEffect(() => setOpen(false), [href]);

  return (
    <header className={`${classes.header} no-print`} ref={bar}>
      <div className={classes.bar}>
        <Link to="/" className={classes.name} activeOptions={{ exact: true }}>
          <Logo />
          wqlab
        </Link>
        <button
          type="button"
          className={classes.toggle}
          aria-expanded={open}
          aria-controls="main-nav"
          onClick={() => setOpen(!open)}
        >
          Menu
        </button>
        <nav id="main-nav" className={classes.nav} data-open={open} aria-label="Main">
          {DESTINATIONS.map(each => (
            <Link
              key={each.name}
              to={each.pages[0].to}
              className={classes.item}
              {...(each === current && { "aria-current": "page", "data-status": "active" })}
            >
              {each.name}
            </Link>
          ))}
          <a href="/docs/" className={classes.item}>
            Docs
          </a>
        </nav>
        <div className={classes.end}>
          <Link to="/submit" className={classes.submit}>
            Submit<span className={classes.long}>&nbsp;a series</span>
          </Link>
          <ThemeToggle />
          {session?.user ? (
            <AccountMenu user={session.user} />
          ) : (
            <Link
              to="/sign-in"
              search={{ next: href }}
              className={classes.item}
              data-unknown={session === null}
            >
              Sign in
            </Link>
          )}
        </div>
      </div>
      {current && current.pages.length > 1 && (
        <nav className={classes.pages} aria-label={current.name}>
          {current.pages.map(({ to, name }) => (
            <Link key={to} to={to} className={classes.page} activeOptions={{ includeSearch: false }}>
              {name}
            </Link>
          ))}
        </nav>
      )}
    </header>
  );
}

/** The logo: four CPUs, one in the candidate's colour. */
function Logo() {
  return (
    <svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
      <g fill="currentColor">
        <rect width="6" height="6" rx="1" />
        <rect y="8" width="6" height="6" rx="1" />
        <rect x="8" y="8" width="6" height="6" rx="1" />
      </g>
      <rect x="8" width="6" height="6" rx="1" fill="var(--arm-b)" />
    </svg>
  );
}
