// Sets the theme before the first paint. A separate file, because the content security policy allows no inline script.
(() => {
  let choice = null;
  try {
    choice = localStorage.getItem("wqlab-theme");
  } catch {
    // Storage is not available: use the system's theme.
  }
  const dark =
    choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
