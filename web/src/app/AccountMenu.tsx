import { useQuery } from "@tanstack/react-query";
import { Link, type LinkProps, useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { MAILS_TO_REVIEW, mailsToReviewQuery } from "@/api/outboxQueries";
import { useSignOut } from "@/api/session";
import type { Scope, SessionUser } from "@/api/types";
import classes from "./AccountMenu.module.css";
import { toast } from "./toasts";
import { useDismissOnOutsideEvent } from "./useDismissOnOutsideEvent";

interface Entry {
  to: LinkProps["to"];
  name: string;
  search?: LinkProps["search"];
  /** Scope that the page requires. */
  scope?: Scope;
}

const REVIEW = "Review mails";
const GROUPS: { title: string; entries: Entry[] }[] = [
  { title: "Account", entries: [{ to: "/account", name: "Account and tokens" }] },
  {
    title: "Automation",
    entries: [
      { to: "/watches", name: "Watches" },
      { to: "/webhooks", name: "Webhooks" },
      { to: "/deliveries", name: "Deliveries" },
      { to: "/deliveries", search: MAILS_TO_REVIEW, name: REVIEW, scope: "maintain" },
      { to: "/forges", name: "Forges", scope: "maintain" },
    ],
  },
  {
    title: "Administration",
    entries: [
      { to: "/admin/users", name: "Users", scope: "admin" },
      { to: "/admin/labs", name: "Labs and storage", scope: "admin" },
      { to: "/admin/audit", name: "Audit log", scope: "admin" },
    ],
  },
];

/** The account menu, as a disclosure of plain links: an ARIA menu would need its own key bindings. */
export function AccountMenu({ user }: { user: SessionUser }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const signOut = useSignOut();
  const close = () => setOpen(false);
  useDismissOnOutsideEvent(box, open, close);
  const waiting = useMailsToReview(user);

  return (
    <div className={classes.box} ref={box}>
      <button
        type="button"
        className={classes.button}
        aria-expanded={open}
        aria-controls="account-menu"
        onClick={() => setOpen(!open)}
      >
        <span className={classes.user}>{user.name}</span>
        <Waiting mails={waiting} />
        <span aria-hidden="true"> ▾</span>
      </button>
      <div id="account-menu" className={classes.menu} hidden={!open}>
        <p className={classes.role}>
          Signed in as <strong>{user.name}</strong>, {user.role}
        </p>
        {GROUPS.map(({ title, entries }) => (
          <nav key={title} aria-label={title} className={classes.group}>
            {entries
              .filter(({ scope }) => !scope || user.scopes.includes(scope))
              .map(({ to, search, name }) => (
                <Link key={name} to={to} search={search} className={classes.item} onClick={close}>
                  {name}
                  {name === REVIEW && <Waiting mails={waiting} />}
                </Link>
              ))}
          </nav>
        ))}
        <button
          type="button"
          className={classes.item}
          onClick={() =>
            signOut.mutate(undefined, {
              onSuccess: () => void navigate({ to: "/" }),
              onError: error => toast({ tone: "bad", text: `Sign-out failed: ${error.message}` }),
            })
          }
        >
          Sign out
        </button>
      </div>
    </div>
  );
}

/** Return the number of mails that wait for a maintainer's review. Poll: there are no events for mails. */
function useMailsToReview(user: SessionUser): number {
  const maintains = user.scopes.includes("maintain");
  return useQuery({ ...mailsToReviewQuery, enabled: maintains, refetchInterval: 60_000 }).data ?? 0;
}

function Waiting({ mails }: { mails: number }) {
  if (mails === 0) return null;
  return (
    <>
      {" "}
      <span className={classes.waiting}>
        {mails}
        <span className="hidden-visually"> {mails === 1 ? "mail waits" : "mails wait"}</span>
      </span>
    </>
  );
}
