/** Where sign-in leads: a path of this lab and nothing else, whatever an address that somebody made says. */
export function safeNext(next: string): string {
  if (!next.startsWith("/") || next.startsWith("//") || next.includes("\\")) return "/";
  try {
    const url = new URL(next, "http://lab.invalid");
    return url.origin === "http://lab.invalid" ? url.pathname + url.search + url.hash : "/";
  } catch {
    return "/";
  }
}
