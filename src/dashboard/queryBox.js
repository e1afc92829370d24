/**
 * A query tried out: registered as a view with a short time to live, followed live, and unregistered on leaving.
 *
 * Its time is renewed while it is looked at, so what this page leaves behind when it cannot say goodbye is gone within
 * two minutes.
 */
// @ts-check
import * as Address from "./address.js"
import { call, Refused } from "./api.js"
import { Cancelled, unlocked } from "./dialogs.js"
import { byId, failure, h } from "./dom.js"
import { LiveResult } from "./liveResult.js"

const timeToLive = "2m"
const renewMs = 45_000

/** A unique name; available on plain http too, where `randomUUID` is not. */
const newId = () =>
  `incantation:dashboard-${[...crypto.getRandomValues(new Uint8Array(9))].map((byte) => byte.toString(36).padStart(2, "0")).join("")}`

/** @param {string} id @param {boolean} [leaving] the page goes away, and the request must outlive it */
const takeBack = (id, leaving = false) =>
  void call("/view/unregister", { method: "POST", body: { id }, keepalive: leaving }).catch(() => undefined)

/** The line the service names, and where in it. @param {string} text @param {any} details */
const place = (text, details) => {
  const line = typeof details?.line === "number" ? text.split("\n")[details.line - 1] : undefined
  return line === undefined
    ? null
    : h("pre", { class: "place" }, `${line}\n${" ".repeat(Math.max(0, details.column - 1))}^`)
}

export class QueryBox {
  /** @param {"ssp" | "scheduler"} kind */
  constructor(kind) {
    this.kind = kind
    /** @type {{ id: string, live: LiveResult, timer: ReturnType<typeof setInterval> } | undefined} */
    this.running = undefined
    /** Of the view that is being registered. @type {string | undefined} */
    this.asked = undefined
    this.text = h("textarea", {
      id: "surql",
      rows: 4,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      placeholder: "SELECT * FROM …",
      on: { keydown: (event) => this.key(/** @type {KeyboardEvent} */ (event)) }
    })
    this.params = h("textarea", {
      id: "params",
      rows: 2,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      placeholder: '{ "min": 3 }',
      on: { keydown: (event) => this.key(/** @type {KeyboardEvent} */ (event)) }
    })
    this.run = h("button", { type: "submit", class: "primary", title: "Ctrl + Enter" }, "Run live")
    this.stop = h("button", { type: "button", class: "ghost", hidden: true, on: { click: () => this.end() } }, "Stop")
    this.tables = h("div", { class: "chips" })
    this.result = h("div", { class: "card", hidden: true })
    this.message = h("div", {})
    this.known = ""
    byId("query").replaceChildren(
      h(
        "form",
        {
          class: "card form",
          on: {
            submit: (event) => {
              event.preventDefault()
              void this.start()
            }
          }
        },
        h("label", { for: "surql" }, "A SELECT, kept live while you look"),
        this.text,
        this.tables,
        h("label", { for: "params" }, "Its parameters, as JSON"),
        this.params,
        h(
          "div",
          { class: "actions" },
          h(
            "span",
            { class: "note" },
            `Registers a temporary view that lives ${timeToLive} and is taken back when you leave.`
          ),
          h("span", { class: "spacer" }),
          this.stop,
          this.run
        )
      ),
      this.message,
      this.result
    )
    addEventListener("pagehide", () => this.end(true))
  }

  /** What an address names is shown and not run: a link alone registers nothing. @param {boolean} is @param
   * {URLSearchParams} words */
  shown(is, words) {
    if (!is) return this.end()
    const surql = words.get("surql")
    if (surql === null) this.tellAddress()
    else if (this.running === undefined) {
      this.text.value = surql
      this.params.value = words.get("params") ?? ""
    }
    if (this.running === undefined) void this.offerTables()
  }

  tellAddress() {
    Address.write("query", { surql: this.text.value.trim(), params: this.params.value.trim() })
  }

  /** The parameters that are written there; undefined, and why is shown, where they are no object. */
  given() {
    const text = this.params.value.trim()
    if (text === "") return {}
    try {
      const json = JSON.parse(text)
      if (typeof json === "object" && json !== null && !Array.isArray(json)) return json
      this.message.replaceChildren(failure({ message: "The parameters must be a JSON object." }))
    } catch (error) {
      this.message.replaceChildren(
        failure({ message: `The parameters are no JSON: ${/** @type {Error} */ (error).message}` })
      )
    }
    this.params.focus()
    return undefined
  }

  told() {}

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.start()
    else if (event.key === "Escape") this.running === undefined ? this.text.blur() : this.end()
  }

  /** Tables to begin with, where it is known which there are. */
  async offerTables() {
    const names =
      this.kind === "ssp"
        ? (await call("/overview").catch(() => ({ tables: [] }))).tables.map((/** @type {any} */ { table }) => table)
        : Object.keys(
            (await call("/proxy/query", { method: "POST", body: { query: "INFO FOR DB" } }).catch(() => ({}))).tables ??
              {}
          )
    const shown = names.filter((/** @type {string} */ name) => !name.startsWith("_svc_")).slice(0, 8)
    if (shown.join() === this.known) return
    this.known = shown.join()
    const quoted = (/** @type {string} */ name) =>
      /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "\\`")}\``
    this.tables.replaceChildren(
      ...shown.map((/** @type {string} */ name) =>
        h(
          "button",
          {
            type: "button",
            class: "chip mono",
            on: {
              click: () => {
                this.text.value = `SELECT * FROM ${quoted(name)} LIMIT 20`
                this.text.focus()
              }
            }
          },
          name
        )
      )
    )
  }

  async start() {
    const surql = this.text.value.trim()
    if (surql === "") return this.text.focus()
    this.end()
    this.message.replaceChildren()
    const params = this.given()
    if (params === undefined) return
    this.tellAddress()
    this.run.disabled = true
    const id = newId()
    this.asked = id
    const body = { id, surql, params, clientId: "dashboard", ttl: timeToLive, format: "tree" }
    const register = () => call("/view/register", { method: "POST", body })
    try {
      await unlocked(register)
      if (this.asked !== id) return takeBack(id)
      const live = new LiveResult(this.kind === "ssp" ? "node" : "ssp", surql)
      this.running = { id, live, timer: setInterval(() => void register().catch(() => undefined), renewMs) }
      this.result.replaceChildren(live.element)
      this.result.hidden = false
      this.stop.hidden = false
      void live.start(id)
    } catch (error) {
      if (this.asked !== id) return
      this.result.hidden = true
      if (!(error instanceof Cancelled))
        this.message.replaceChildren(
          failure(
            error instanceof Refused ? error : { message: String(error) },
            error instanceof Refused ? place(surql, error.details) : null
          )
        )
    } finally {
      if (this.asked === id) {
        this.asked = undefined
        this.run.disabled = false
      }
    }
  }

  /** @param {boolean} [leaving] the page goes away */
  end(leaving = false) {
    // One that is being registered is taken back when its answer comes, which a page that goes away does not hear.
    if (leaving && this.asked !== undefined) takeBack(this.asked, true)
    this.asked = undefined
    this.run.disabled = false
    if (this.running === undefined) return
    const { id, live, timer } = this.running
    this.running = undefined
    clearInterval(timer)
    live.stop()
    this.stop.hidden = true
    takeBack(id, leaving)
  }
}
