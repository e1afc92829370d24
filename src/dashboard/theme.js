/**
 * Light or dark, set before the first paint.
 *
 * A script of its own without a module, because a module runs after the page has been shown once, in the wrong colours.
 * The choice is the only thing this dashboard stores.
 */
// @ts-check
;(() => {
  try {
    const chosen = localStorage.getItem("theme")
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen
  } catch {
    /* Storage may be forbidden; the system's choice then holds. */
  }
})()
