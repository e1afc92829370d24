/**
 * One view from all sides: its query and parameters, its SSP, what it costs, its plan, and its result as it changes.
 *
 * The plan is read once and on request, because `/debug/view` lists the whole result; what is live is the stream.
 */
// @ts-check
import { call, Refused } from "./api.js"
import { Cancelled, unlocked } from "./dialogs.js"
import { failure, h, pill } from "./dom.js"
import { ago, brief, count, ttl } from "./format.js"
import { LiveResult } from "./liveResult.js"

/** @param {ReadonlyArray<readonly [string, import("./dom.js").Child]>} pairs */
const facts = (pairs) =>
  h("dl", { class: "facts" }, ...pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))))

/** @param {ReadonlyArray<any>} plan */
const planTable = (plan) =>
  h(
    "table",
    { "aria-label": "Plan" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {}, "Operator"),
        h("th", {}, "Maintained"),
        h("th", { class: "num" }, "Rows"),
        h("th", { class: "num" }, "Last cost"),
        h("th", { class: "num" }, "Cost")
      )
    ),
    h(
      "tbody",
      {},
      ...plan.map((row) =>
        h(
          "tr",
          {},
          h("td", { class: "mono" }, row.operator),
          h(
            "td",
            {},
            row.incremental ? pill("good", "by change") : pill("warn", "run again"),
            row.reason === null ? null : h("span", { class: "note" }, ` ${row.reason}`)
          ),
          h("td", { class: "num" }, count(row.rows)),
          h("td", { class: "num" }, count(row.last_cost)),
          h("td", { class: "num" }, count(row.total_cost))
        )
      )
    )
  )

export class ViewPanel {
  /** @param {"ssp" | "scheduler"} kind @param {(isOpen: boolean) => void} changed */
  constructor(kind, changed) {
    this.kind = kind
    this.changed = changed
    /** @type {import("./api.js").Door} */
    this.door = kind === "ssp" ? "node" : "ssp"
    /** @type {LiveResult | undefined} */
    this.live = undefined
    // The browser's own: what is behind it cannot be reached, and Escape closes it wherever the focus is.
    this.element = h("dialog", {
      class: "panel",
      "aria-labelledby": "panel-title",
      on: {
        close: () => this.closed(),
        click: (event) => {
          if (event.target === this.element) this.close()
        }
      }
    })
    /** Id of the view that is looked at. */
    this.id = ""
  }

  /** @param {any} view */
  async open(view) {
    this.live?.stop()
    this.id = view.id
    const live = new LiveResult(this.door, view.query)
    this.live = live
    const inside = h("div", { class: "inside" })
    this.element.replaceChildren(
      h(
        "div",
        { class: "row head" },
        h("h2", { class: "mono wrap", id: "panel-title" }, brief(view.id, 2000)),
        h(
          "button",
          {
            type: "button",
            class: "ghost icon",
            autofocus: true,
            "aria-label": "Close",
            title: "Close (Esc)",
            on: { click: () => this.close() }
          },
          "×"
        )
      ),
      h("pre", { class: "query" }, view.query),
      facts([
        ["Owner", view.owner ?? (this.kind === "ssp" ? "this SSP" : "waits for an SSP")],
        ["Client", brief(view.client_id, 80)],
        ["Format", view.format],
        ["Time to live", ttl(view.ttl_seconds)],
        ["Last active", ago(view.last_active_at)],
        ...(view.params === null
          ? []
          : [/** @type {const} */ (["Parameters", h("code", { class: "wrap" }, brief(view.params, 2000))])])
      ]),
      inside,
      live.element
    )
    if (!this.element.open) this.element.showModal()
    this.changed(true)
    this.element.scrollTop = 0
    void live.start(view.id)
    await this.look(view, inside)
  }

  /** @param {any} view @param {HTMLElement} inside */
  async look(view, inside) {
    try {
      const debug = await unlocked(() => call(`/debug/view/${encodeURIComponent(view.id)}`, { door: this.door }))
      inside.replaceChildren(
        facts([
          ["Rows", count(debug.cache_size)],
          ["Generation", count(debug.content_generation)],
          ["Tables", debug.referenced_tables.join(", ")],
          ["Hash", h("code", {}, brief(debug.last_hash, 24))]
        ]),
        h(
          "div",
          { class: "row" },
          h("h3", {}, "Plan"),
          h("span", { class: "spacer" }),
          h(
            "button",
            { type: "button", class: "ghost small", on: { click: () => void this.look(view, inside) } },
            "Read again"
          )
        ),
        h(
          "div",
          { class: "scroll", tabindex: 0, role: "group", "aria-label": "Operators of the plan" },
          planTable(debug.plan)
        ),
        ...(debug.errors.length === 0
          ? []
          : [
              h("h3", {}, `${count(debug.errors.length)} rows left out`),
              h(
                "ul",
                { class: "errors" },
                ...debug.errors
                  .slice(0, 20)
                  .map((/** @type {any} */ { id, reason }) =>
                    h("li", {}, h("code", {}, brief(id, 60)), " ", brief(reason, 300))
                  )
              )
            ])
      )
    } catch (error) {
      if (!(error instanceof Cancelled))
        inside.replaceChildren(failure(error instanceof Refused ? error : { message: String(error) }))
    }
  }

  close() {
    if (this.element.open) this.element.close()
  }

  closed() {
    // The browser tells of the end a moment later: the panel may have been opened again meanwhile.
    if (this.element.open) return
    this.live?.stop()
    this.live = undefined
    this.element.replaceChildren()
    this.changed(false)
    // The browser has given the focus back, unless the row is another element by now. Where the focus is somewhere,
    // another user may have moved it meanwhile.
    if (document.activeElement !== null && document.activeElement !== document.body) return
    for (const row of document.querySelectorAll("#views [data-row]"))
      if (/** @type {HTMLElement} */ (row).dataset["row"] === this.id) /** @type {HTMLElement} */ (row).focus()
  }
}
