/**
 * The registered views, a page at a time, and the panel of the one that is looked at.
 *
 * Asked when the section opens, when the user searches or turns the page, and every few seconds while it is looked at;
 * never all views at once.
 */
// @ts-check
import * as Address from "./address.js"
import { call, Refused } from "./api.js"
import { Cancelled, unlocked } from "./dialogs.js"
import { byId, empty, failure, h, keep, pageTurners, pill, say, since, tellTimes } from "./dom.js"
import { brief, count, ttl } from "./format.js"
import { ViewPanel } from "./viewPanel.js"

const pageSize = 50
const everyMs = 5000

/** @typedef {{ title: string, class?: string, read: (view: any) => import("./dom.js").Child }} Column */

const states = /** @type {const} */ ({ placed: "good", moving: "warn", waiting: "warn", suspect: "bad" })

/** @type {{ [kind: string]: ReadonlyArray<Column> }} */
const columns = {
  scheduler: [
    { title: "State", read: ({ state }) => pill(states[/** @type {keyof typeof states} */ (state)] ?? "calm", state) },
    { title: "Owner", class: "mono clip", read: ({ owner }) => owner ?? "–" },
    { title: "Client", class: "clip optional", read: ({ client_id: client }) => brief(client, 40) },
    { title: "Cost", class: "num", read: ({ total_cost: cost }) => (cost === undefined ? "–" : count(cost)) },
    { title: "TTL", class: "num optional", read: ({ ttl_seconds: seconds }) => ttl(seconds) },
    { title: "Active", class: "num optional", read: ({ last_active_at: at }) => since(at) }
  ],
  ssp: [
    {
      title: "Rows",
      class: "num",
      read: ({ errors, rows }) =>
        errors > 0
          ? h("span", { title: `${errors} left out` }, `${count(rows)} `, pill("bad", `${errors} failing`))
          : count(rows)
    },
    { title: "Last cost", class: "num optional", read: ({ last_cost: cost }) => count(cost) },
    { title: "Cost", class: "num", read: ({ total_cost: cost }) => count(cost) },
    {
      title: "Kept",
      class: "optional",
      read: ({ incremental }) => (incremental ? pill("good", "by change") : pill("warn", "run again"))
    },
    { title: "Followed", class: "num optional", read: ({ streams }) => (streams === 0 ? "–" : count(streams)) },
    { title: "Client", class: "clip optional", read: ({ client_id: client }) => brief(client, 40) },
    { title: "TTL", class: "num optional", read: ({ ttl_seconds: seconds }) => ttl(seconds) }
  ]
}

export class ViewList {
  /** @param {"ssp" | "scheduler"} kind */
  constructor(kind) {
    this.kind = kind
    this.columns = columns[kind] ?? []
    /** @type {Array<string>} ids behind which the pages before this one began */
    this.behind = []
    this.ssp = ""
    this.askedAt = Number.NEGATIVE_INFINITY
    this.asking = 0
    /** @type {Map<string, { text: string, element: HTMLElement }>} */
    this.rows = new Map()
    this.panel = new ViewPanel(kind, (isOpen) => this.tellAddress(isOpen))
    this.order = h(
      "select",
      { id: "order", "aria-label": "Order of the views", on: { change: () => this.again() } },
      h("option", { value: "" }, "by id"),
      h("option", { value: "cost" }, "by cost")
    )
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Search id, client or query",
      "aria-label": "Search the views",
      spellcheck: "false",
      on: { input: () => this.searched() }
    })
    this.ofWhom = h("button", { type: "button", class: "chip", hidden: true, on: { click: () => this.ofSsp("") } })
    this.total = h("span", { class: "note" })
    this.body = h("tbody", {})
    this.message = h("div", {})
    const { back, forth } = pageTurners((by) => this.turn(by))
    this.back = back
    this.forth = forth
    this.table = h(
      "table",
      { class: "rows", "aria-label": "Views" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", {}, "View"),
          h("th", {}, "Query"),
          ...this.columns.map(({ class: name, title }) => h("th", { class: name }, title))
        )
      ),
      this.body
    )
    /** @type {string | null} */
    this.next = null
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.typing = undefined
    byId("views").replaceChildren(
      h(
        "div",
        { class: "bar" },
        this.search,
        this.order,
        this.ofWhom,
        this.total,
        h("span", { class: "spacer" }),
        this.back,
        this.forth
      ),
      this.message,
      h("div", { class: "card scroll" }, this.table),
      this.panel.element
    )
  }

  /** @param {boolean} is @param {URLSearchParams} words */
  shown(is, words) {
    this.askedAt = Number.NEGATIVE_INFINITY
    const view = words.get("view")
    if (!is || view === null) this.panel.close()
    if (!is) return
    // A tab's own address says nothing: what was looked for stays.
    if (words.size > 0) {
      this.search.value = words.get("search") ?? ""
      this.order.value = words.get("order") ?? ""
      this.behind = []
      this.only(words.get("ssp") ?? "")
    }
    if (view !== null && !(this.panel.element.open && this.panel.id === view)) void this.open(view)
    else if (view === null) this.tellAddress(false)
  }

  /** @param {boolean} isOpen whether a view is looked at */
  tellAddress(isOpen) {
    const view = isOpen ? this.panel.id : ""
    const words = { search: this.search.value, order: this.order.value, ssp: this.ssp, view }
    Address.write("views", words, isOpen && Address.read().words.get("view") !== view)
  }

  /** The view that an address names. @param {string} id */
  async open(id) {
    const words = new URLSearchParams({ search: id, limit: "500" })
    try {
      const { views } = await unlocked(() => call(`/views?${words}`))
      const view = views.find((/** @type {any} */ each) => each.id === id)
      if (Address.read().words.get("view") !== id) return
      if (view !== undefined) return void this.panel.open(view)
      this.message.replaceChildren(failure({ message: `No view ${brief(id, 200)} is registered here.` }))
      this.tellAddress(false)
    } catch (error) {
      if (!(error instanceof Cancelled))
        this.message.replaceChildren(failure(error instanceof Refused ? error : { message: String(error) }))
    }
  }

  told() {
    if (performance.now() - this.askedAt > everyMs && !document.hidden) void this.load()
  }

  searched() {
    clearTimeout(this.typing)
    this.typing = setTimeout(() => this.again(), 200)
  }

  /** Asks anew, from the first page. */
  again() {
    this.behind = []
    this.tellAddress(this.panel.element.open)
    void this.load()
  }

  /** Only those of one SSP; of all with an empty name. @param {string} id */
  ofSsp(id) {
    this.only(id)
    this.askedAt = Number.NEGATIVE_INFINITY
    if (!byId("views").hidden) this.again()
  }

  /** @param {string} id */
  only(id) {
    this.ssp = id
    this.ofWhom.hidden = id === ""
    say(this.ofWhom, `on ${id} ×`)
    this.ofWhom.setAttribute("aria-label", `Only on ${id}; show all`)
  }

  /** @param {number} step */
  turn(step) {
    if (step > 0 && this.next !== null) this.behind.push(this.next)
    else if (step < 0) this.behind.pop()
    void this.load()
  }

  async load() {
    this.askedAt = performance.now()
    const asked = ++this.asking
    const after = this.behind.at(-1)
    const words = new URLSearchParams({
      limit: String(pageSize),
      ...(after === undefined ? {} : { after }),
      ...(this.search.value === "" ? {} : { search: this.search.value }),
      ...(this.order.value === "" ? {} : { order: this.order.value }),
      ...(this.ssp === "" ? {} : { ssp: this.ssp })
    })
    try {
      const answer = await unlocked(() => call(`/views?${words}`))
      if (asked === this.asking) this.show(answer)
    } catch (error) {
      if (error instanceof Cancelled || asked !== this.asking) return
      this.message.replaceChildren(failure(error instanceof Refused ? error : { message: String(error) }))
    }
  }

  /** @param {{ views: ReadonlyArray<any>, total: number, next: string | null }} answer */
  show({ next, total, views }) {
    this.next = next
    this.message.replaceChildren()
    const from = this.behind.length * pageSize
    say(
      this.total,
      views.length === 0
        ? ""
        : this.search.value === "" && this.ssp === ""
          ? `${count(from + 1)}–${count(from + views.length)} of ${count(total)}`
          : `${count(from + 1)}–${count(from + views.length)} that match, of ${count(total)}`
    )
    this.back.disabled = this.behind.length === 0
    this.forth.disabled = next === null
    this.rows = keep(
      this.body,
      this.rows,
      views,
      ({ id }) => id,
      (view) => this.row(view)
    )
    tellTimes(this.body)
    if (views.length === 0)
      this.body.replaceChildren(h("tr", {}, h("td", { colspan: this.columns.length + 2 }, this.nothing(total))))
  }

  /** @param {number} total */
  nothing(total) {
    return total > 0
      ? empty("Nothing matches", "Search for another part of an id, a client or a query.")
      : empty(
          "No views yet",
          "Register one with ",
          h("code", {}, "POST /view/register"),
          ", or try a query in ",
          h("a", { href: "#query" }, "Query"),
          "."
        )
  }

  /** @param {any} view */
  row(view) {
    const look = () => void this.panel.open(view)
    return h(
      "tr",
      {
        tabindex: 0,
        "data-row": view.id,
        on: {
          click: look,
          keydown: (event) => {
            if (/** @type {KeyboardEvent} */ (event).key !== "Enter") return
            // Else the same key presses the button that has the focus then.
            event.preventDefault()
            look()
          }
        }
      },
      h("td", { class: "mono clip id" }, brief(view.id, 60)),
      h("td", { class: "mono clip query" }, brief(view.query, 160)),
      ...this.columns.map(({ class: name, read }) => h("td", { class: name }, read(view)))
    )
  }
}
