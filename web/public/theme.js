// The theme that was chosen, or the system's.
(function () {
  var chosen = null;
  try {
    chosen = localStorage.getItem("berth.theme");
  } catch {
    // storage is blocked: the system's theme it is
  }
  var dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.classList.toggle("dark", dark);
})();
