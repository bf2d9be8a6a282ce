import { Link, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useSession } from "@/api/session";
import { AccountMenu } from "./AccountMenu";
import classes from "./Header.module.css";
import { ThemeToggle } from "./ThemeToggle";
import { useDismiss } from "./useDismiss";

const PLACES = [
  { to: "/submit", name: "Submit" },
  { to: "/submissions", name: "Submissions" },
  { to: "/lab", name: "Lab" },
  { to: "/plans", name: "Plans" },
  { to: "/trees", name: "Trees" },
] as const;

export function Header() {
  const session = useSession();
  const [open, setOpen] = useState(false);
  const bar = useRef<HTMLElement>(null);
  const href = useRouterState({ select: state => state.location.href });
  // Two submissions, side by side.
  const comparing = href.startsWith("/compare");
  useDismiss(bar, open, () => setOpen(false));

  // A page was chosen: the menu has done its work.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address is what it reacts to
  useEffect(() => setOpen(false), [href]);

  return (
    <header className={`${classes.header} no-print`} ref={bar}>
      <div className={classes.bar}>
        <Link to="/" className={classes.name} activeOptions={{ exact: true }}>
          <Mark />
          wqlab
        </Link>
        <button
          type="button"
          className={classes.toggle}
          aria-expanded={open}
          aria-controls="places"
          onClick={() => setOpen(!open)}
        >
          Menu
        </button>
        <nav id="places" className={classes.places} data-open={open} aria-label="Main">
          {PLACES.map(({ to, name }) => (
            <Link
              key={to}
              to={to}
              className={classes.place}
              {...(to === "/submissions" && comparing && { "aria-current": "page", "data-status": "active" })}
            >
              {name}
            </Link>
          ))}
        </nav>
        <div className={classes.end}>
          <ThemeToggle />
          {session?.user ? (
            <AccountMenu user={session.user} />
          ) : (
            <Link
              to="/sign-in"
              search={{ next: href }}
              className={classes.place}
              data-unknown={session === null}
            >
              Sign in
            </Link>
          )}
        </div>
      </div>
    </header>
  );
}

/** Four places for a thread, one of them the candidate's. */
function Mark() {
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
