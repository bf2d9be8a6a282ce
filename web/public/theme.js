// Runs before the first paint, so that a chosen theme never flashes. A file of its own: the page allows no inline script.
(() => {
  let choice = null;
  try {
    choice = localStorage.getItem("wqlab-theme");
  } catch {
    // No storage (a locked-down browser): the system's theme is used.
  }
  const dark =
    choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
