import { Link, useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useSignOut } from "@/api/session";
import type { SessionUser } from "@/api/types";
import classes from "./AccountMenu.module.css";
import { toast } from "./toasts";
import { useDismissOnOutsideEvent } from "./useDismissOnOutsideEvent";

/** The account menu, as a disclosure of plain links: an ARIA menu would need its own key bindings. */
export function AccountMenu({ user }: { user: SessionUser }) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const signOut = useSignOut();
  const close = () => setOpen(false);
  useDismissOnOutsideEvent(box, open, close);

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
        <span aria-hidden="true"> ▾</span>
      </button>
      <div id="account-menu" className={classes.menu} hidden={!open}>
        <p className={classes.role}>
          Signed in as <strong>{user.name}</strong>, {user.role}
        </p>
        <Link to="/account" className={classes.item} onClick={close}>
          Account and tokens
        </Link>
        <Link to="/webhooks" className={classes.item} onClick={close}>
          Webhooks
        </Link>
        <Link to="/deliveries" className={classes.item} onClick={close}>
          Deliveries
        </Link>
        {user.scopes.includes("maintain") && (
          <Link to="/forges" className={classes.item} onClick={close}>
            Forges
          </Link>
        )}
        {user.scopes.includes("admin") && (
          <>
            <Link to="/admin/users" className={classes.item} onClick={close}>
              Users
            </Link>
            <Link to="/admin/labs" className={classes.item} onClick={close}>
              Labs
            </Link>
            <Link to="/admin/audit" className={classes.item} onClick={close}>
              Audit log
            </Link>
          </>
        )}
        <Link to="/permissions" className={classes.item} onClick={close}>
          Who may do what
        </Link>
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
