/** Page shell: header, footer, banners and live region around every page. */
import { Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { LiveRegion } from "@/parts/LiveRegion";
import { Footer } from "./Footer";
import { Header } from "./Header";
import { Notice } from "./Notice";
import { OfflineBanner } from "./OfflineBanner";
import classes from "./Shell.module.css";
import { Toasts } from "./toasts";

export function Shell() {
  const main = useRef<HTMLElement>(null);
  const pathname = useRouterState({ select: state => state.location.pathname });
  const previous = useRef(pathname);

  // On a new page, move the focus to its start. Search parameters (filters, selections) leave the focus alone.
  useEffect(() => {
    if (previous.current === pathname) return;
    previous.current = pathname;
    main.current?.focus({ preventScroll: true });
  }, [pathname]);

  return (
    <div className={classes.shell}>
      <a className={classes.skip} href="#main">
        Skip to content
      </a>
      <div>
        <Header />
        <Notice />
      </div>
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
