/** Return the path to open after sign-in: `next` if it is a path of this site, otherwise `/` (no open redirects). */
export function safeRedirectPath(next: string): string {
  if (!next.startsWith("/") || next.startsWith("//") || next.includes("\\")) return "/";
  try {
    const url = new URL(next, "http://lab.invalid");
    return url.origin === "http://lab.invalid" ? url.pathname + url.search + url.hash : "/";
  } catch {
    return "/";
  }
}
