import { useQuery } from "@tanstack/react-query";
import { Link, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { MAILS_TO_REVIEW, mailsToReviewQuery } from "@/api/queries";
import { useHasScope, useSession } from "@/api/session";
import { AccountMenu } from "./AccountMenu";
import classes from "./Header.module.css";
import { ThemeToggle } from "./ThemeToggle";
import { useDismissOnOutsideEvent } from "./useDismissOnOutsideEvent";

const NAV_ITEMS = [
  { to: "/submit", name: "Submit" },
  { to: "/submissions", name: "Submissions" },
  { to: "/lab", name: "Lab" },
  { to: "/plans", name: "Plans" },
  { to: "/trees", name: "Trees" },
  { to: "/watches", name: "Watches" },
  { to: "/history", name: "History" },
] as const;

export function Header() {
  const session = useSession();
  const may = useHasScope();
  const [open, setOpen] = useState(false);
  const bar = useRef<HTMLElement>(null);
  const href = useRouterState({ select: state => state.location.href });
  // Pages that belong to an item with another address.
  const owner = href.startsWith("/compare")
    ? "/submissions"
    : href.startsWith("/bisections")
      ? "/history"
      : null;
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
          {NAV_ITEMS.map(({ to, name }) => (
            <Link
              key={to}
              to={to}
              className={classes.item}
              {...(to === owner && { "aria-current": "page", "data-status": "active" })}
            >
              {name}
            </Link>
          ))}
          {may("maintain") && <ReviewItem />}
        </nav>
        <div className={classes.end}>
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
    </header>
  );
}

/** Link to the mails that wait for review, with their number, for maintainers. Poll: there are no events for mails. */
function ReviewItem() {
  const { data: waiting = 0 } = useQuery({ ...mailsToReviewQuery, refetchInterval: 60_000 });
  return (
    <Link to="/deliveries" search={MAILS_TO_REVIEW} className={classes.item}>
      Review
      {waiting > 0 && (
        <span className={classes.waiting}>
          {waiting}
          <span className="hidden-visually"> {waiting === 1 ? "mail waits" : "mails wait"}</span>
        </span>
      )}
    </Link>
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
