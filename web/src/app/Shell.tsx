/** What every page has around it. */
import { Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { LiveRegion } from "@/parts/LiveRegion";
import { Footer } from "./Footer";
import { Header } from "./Header";
import { OfflineBanner } from "./OfflineBanner";
import classes from "./Shell.module.css";
import { Toasts } from "./toasts";

export function Shell() {
  const main = useRef<HTMLElement>(null);
  const pathname = useRouterState({ select: state => state.location.pathname });
  const before = useRef(pathname);

  // Another page: whoever listens or tabs starts at its top. Filters and selections (search) leave the focus alone.
  useEffect(() => {
    if (before.current === pathname) return;
    before.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);

  return (
    <div className={classes.shell}>
      <a className={classes.skip} href="#main">
        Skip to content
      </a>
      <Header />
      <main id="main" className={classes.main} ref={main} tabIndex={-1}>
        <Outlet />
      </main>
      <Footer />
      <OfflineBanner />
      <Toasts />
      <LiveRegion />
    </div>
  );
}
