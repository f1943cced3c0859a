// Runs before anything is painted, so that who chose a theme never sees the other one flash by.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("tocsin.theme");
  } catch {
    // Storage can be forbidden; the system's theme serves.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.mantineColorScheme = dark ? "dark" : "light";
})();
