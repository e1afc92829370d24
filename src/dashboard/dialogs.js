/**
 * The dialogs: the secret, a question before something is done, and the list of shortcuts.
 *
 * The browser's own `<dialog>`, which keeps the focus inside, closes on Escape and gives the focus back.
 */
// @ts-check
import { isRefused, keepSecret, Refused } from "./api.js"
import { byId, h, say } from "./dom.js"

/** @param {HTMLElement} content @param {string} label @returns {HTMLDialogElement} */
const open = (content, label) => {
  const dialog = h("dialog", { "aria-label": label }, content)
  document.body.append(dialog)
  dialog.addEventListener("close", () => dialog.remove())
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close()
  })
  dialog.showModal()
  return dialog
}

/** Whether one is open, so that shortcuts keep quiet. */
export const isOpen = () => document.querySelector("dialog[open]") !== null

/** Thrown where the user closes the dialog without a secret. */
export class Cancelled extends Error {}

const asks = { node: "This node asks for its secret", ssp: "The SSPs ask for their secret" }

/** @type {Map<string, Promise<void>>} */
const asking = new Map()

/**
 * Asks once, however many requests wait for it. @param {import("./api.js").Door} door @param {string} [why] @returns
 * {Promise<void>}
 */
export const askSecret = (door, why) => {
  const known = asking.get(door)
  if (known !== undefined) return known
  const asked = /** @type {Promise<void>} */ (
    new Promise((done, cancelled) => {
      const input = h("input", {
        type: "password",
        id: "secret",
        autocomplete: "off",
        spellcheck: "false",
        required: true,
        "aria-describedby": "secret-note"
      })
      const form = h(
        "form",
        { method: "dialog" },
        h("h2", {}, asks[door]),
        why === undefined ? null : h("p", { class: "failure" }, why),
        h(
          "label",
          { for: "secret" },
          "Secret ",
          h(
            "code",
            {},
            door === "node" && document.body.dataset["kind"] === "scheduler"
              ? "SVC_SCHEDULER_AUTH_SECRET"
              : "SVC_AUTH_SECRET"
          )
        ),
        input,
        h(
          "p",
          { id: "secret-note", class: "note" },
          "One by name will do if it has the scope read; what else it opens, it opens here. Kept in the memory of this page and sent as a header. Gone when you close or reload it."
        ),
        h(
          "div",
          { class: "actions" },
          h("button", { type: "button", class: "ghost", on: { click: () => dialog.close("") } }, "Cancel"),
          h("button", { value: "ok", class: "primary" }, "Unlock")
        )
      )
      const dialog = open(form, asks[door])
      dialog.addEventListener("close", () => {
        const secret = input.value
        input.value = ""
        if (dialog.returnValue !== "ok" || secret === "") return cancelled(new Cancelled("not unlocked"))
        keepSecret(door, secret)
        document.dispatchEvent(new Event("secret"))
        done()
      })
    })
  ).finally(() => asking.delete(door))
  asking.set(door, asked)
  return asked
}

/**
 * Runs `work`; where a secret is missing or wrong, asks for it and tries again. @template A @param {() => Promise<A>}
 * work @returns {Promise<A>}
 */
export const unlocked = async (work) => {
  for (let refused = 0; ; ) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error
      if (!isRefused(error)) continue
      keepSecret(error.door, undefined)
      document.dispatchEvent(new Event("secret"))
      await askSecret(error.door, refused++ === 0 ? undefined : "That secret was refused.")
    }
  }
}

/** @param {string} title @param {string} text @param {string} action @returns {Promise<boolean>} */
export const confirmed = (title, text, action) =>
  new Promise((done) => {
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", {}, title),
      h("p", { class: "wrap" }, text),
      h(
        "div",
        { class: "actions" },
        h("button", { value: "", class: "ghost" }, "Keep as it is"),
        h("button", { value: "ok", class: "danger" }, action)
      )
    )
    const dialog = open(form, title)
    dialog.addEventListener("close", () => done(dialog.returnValue === "ok"))
  })

const shortcuts = [
  ["1 – 4", "Overview, Views, Query, Jobs"],
  ["/", "Search the views"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["Ctrl + Enter", "Run the query"],
  ["Esc", "Close, or stop the query"],
  ["u", "Give or forget the secret"],
  ["t", "Light or dark"],
  ["?", "This list"]
]

export const showHelp = () => {
  const rows = shortcuts.flatMap(([keys, what]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)])
  open(
    h(
      "form",
      { method: "dialog" },
      h("h2", {}, "Keyboard shortcuts"),
      h("dl", { class: "keys" }, ...rows),
      h(
        "div",
        { class: "actions" },
        h("a", { href: "/docs" }, "API documents"),
        h("button", { value: "ok", class: "primary" }, "Close")
      )
    ),
    "Keyboard shortcuts"
  )
}

/** A word at the top of the page; undefined takes it away. @param {string | undefined} text */
export const notice = (text) => {
  const box = byId("notice")
  box.hidden = text === undefined
  say(box, text ?? "")
}
