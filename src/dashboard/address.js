/**
 * What is looked at, as the address says it: `#views?search=ann&view=incantation:one`, so that a link or a reload shows
 * it again.
 */
// @ts-check

/** @returns {{ section: string, words: URLSearchParams }} */
export const read = () => {
  const hash = location.hash.slice(1)
  const at = hash.indexOf("?")
  return {
    section: at < 0 ? hash : hash.slice(0, at),
    words: new URLSearchParams(at < 0 ? "" : hash.slice(at + 1))
  }
}

/**
 * Has the address say what is shown. @param {string} section @param {{ [name: string]: string }} words empty ones are
 * left out
 * @param {boolean} [isStep] the user can go back to what was shown before
 */
export const write = (section, words, isStep = false) => {
  const said = new URLSearchParams(Object.entries(words).filter(([, word]) => word !== "")).toString()
  const hash = `#${section}${said === "" ? "" : `?${said}`}`
  // Another section has the address by now.
  if (hash === location.hash || read().section !== section) return
  if (isStep) history.pushState(null, "", hash)
  else history.replaceState(null, "", hash)
}
