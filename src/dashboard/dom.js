/**
 * Elements made from data: text is always text, whatever it says.
 *
 * The only place that makes elements; nothing here or elsewhere takes markup from a value, so an id or a query cannot
 * become code. Characters that are not seen are shown by their number, so an id cannot look like another or turn round
 * the text beside it.
 */
// @ts-check
import { ago, visible } from "./format.js"

/** @typedef {Node | string | number | null | undefined | false} Child */
/**
 * @typedef {{ class?: string | undefined, on?: { [event: string]: (event: Event) => void }, [attribute: string]:
 * unknown }} Props
 */

const svgNames = new Set(["svg", "path", "polyline", "line", "circle"])

/**
 * @template {string} T
 * @param {T} name
 * @param {Props} [props] attributes; `class`, `on` for listeners; undefined and false leave an attribute out
 * @param {...Child} children
 * @returns {T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement}
 */
export const h = (name, props = {}, ...children) => {
  const element = svgNames.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name)
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === false || value === null) continue
    if (key === "on")
      for (const [event, listener] of Object.entries(
        /** @type {{ [event: string]: (event: Event) => void }} */ (value)
      ))
        element.addEventListener(event, listener)
    else
      element.setAttribute(
        key,
        value === true ? "" : key === "title" || key === "aria-label" ? visible(String(value)) : String(value)
      )
  }
  element.append(
    ...children
      .filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (typeof child === "object" ? /** @type {Node} */ (child) : visible(String(child))))
  )
  return /** @type {never} */ (element)
}

/**
 * Sets text only when it differs: a repaint of what stays the same is work for nothing. @param {Element} element @param
 * {string} text
 */
export const say = (element, text) => {
  const shown = visible(text)
  if (element.textContent !== shown) element.textContent = shown
}

/**
 * Shows items as children of `parent`; what stays as it was keeps its element, with focus and whatever is open in it.
 * @template A @param {HTMLElement} parent @param {Map<string, { text: string, element: HTMLElement }>} known from the
 * last time, by key
 * @param {ReadonlyArray<A>} items @param {(item: A) => string} keyOf @param {(item: A, isNew: boolean) => HTMLElement}
 * make
 * @returns {Map<string, { text: string, element: HTMLElement }>}
 */
export const keep = (parent, known, items, keyOf, make) => {
  /** @type {typeof known} */
  const now = new Map()
  for (const item of items) {
    const key = keyOf(item)
    const text = JSON.stringify(item) ?? ""
    const before = known.get(key)
    now.set(key, before?.text === text ? before : { text, element: make(item, before === undefined) })
  }
  const elements = [...now.values()].map(({ element }) => element)
  if (elements.length !== parent.children.length || elements.some((element, i) => element !== parent.children[i])) {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset["row"]
    parent.replaceChildren(...elements)
    if (focused !== undefined && document.activeElement === document.body)
      for (const element of elements) if (element.dataset["row"] === focused) element.focus()
  }
  return now
}

/** How long ago a time was, told anew by {@link tellTimes}. @param {string | null} iso */
export const since = (iso) => (iso === null ? h("span", {}, "–") : h("time", { datetime: iso, title: iso }, ago(iso)))

/** @param {HTMLElement} inside */
export const tellTimes = (inside) => {
  for (const time of inside.querySelectorAll("time")) say(time, ago(time.dateTime))
}

/** The element with this id, which the page has. @param {string} id @returns {HTMLElement} */
export const byId = (id) => {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`the page has no #${id}`)
  return found
}

/** A state in a colour and a word. @param {"good" | "warn" | "bad" | "wait" | "calm"} tone @param {string} word */
export const pill = (tone, word) => h("span", { class: `pill ${tone}` }, word)

/**
 * What is shown where there is nothing yet: what that means and what to do next. @param {string} title @param
 * {...Child} what
 */
export const empty = (title, ...what) => h("div", { class: "empty" }, h("strong", {}, title), h("p", {}, ...what))

/**
 * An error as the service words it. @param {{ code?: string | undefined, message: string }} error @param {...Child}
 * more
 */
export const failure = (error, ...more) =>
  h(
    "div",
    { class: "failure", role: "alert" },
    error.code === undefined ? null : h("code", {}, error.code),
    h("span", {}, error.message),
    ...more
  )

/**
 * The two buttons that turn the pages of a list. @param {(by: 1 | -1) => void} turn @returns {{ back: HTMLButtonElement,
 * forth: HTMLButtonElement }}
 */
export const pageTurners = (turn) => {
  /** @param {string} text @param {1 | -1} by */
  const turner = (text, by) =>
    h("button", { type: "button", class: "ghost", disabled: true, on: { click: () => turn(by) } }, text)
  return { back: turner("Previous", -1), forth: turner("Next", 1) }
}
