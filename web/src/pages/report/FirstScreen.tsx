import { useRouter } from "@tanstack/react-router";
import { memo, useEffect, useRef } from "react";

/** Paths that the server answers itself: files, the documentation and formats of a report. */
const SERVED = /^\/(?:api|docs|r\/\d+\.)/;

/** The first screen of a report as the server wrote it, whose links are followed without loading the page again. */
export const FirstScreen = memo(function FirstScreen({ html }: { html: string }) {
  const router = useRouter();
  const whole = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = whole.current;
    const follow = (event: MouseEvent) => {
      const link = (event.target as Element).closest("a");
      if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
        return;
      const here = new URL(router.state.location.href, location.origin);
      const { origin, pathname, search, hash } = new URL(link.getAttribute("href") ?? "", here);
      if (origin !== location.origin || SERVED.test(pathname)) return;
      event.preventDefault();
      router.history.push(pathname + search + hash);
    };
    element?.addEventListener("click", follow);
    return () => element?.removeEventListener("click", follow);
  }, [router]);
  // biome-ignore lint/security/noDangerouslySetInnerHtml: the server has escaped all input in it
  return <div className="report-first" ref={whole} dangerouslySetInnerHTML={{ __html: html }} />;
});
