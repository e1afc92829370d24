/**
 * The cluster as a map: the scheduler, the line to each SSP, and what waits on it.
 *
 * Each SSP has a state in a colour and a word, and a bar that fills as its buffer does, so that trouble shows without
 * reading.
 */
// @ts-check
import { empty, h, say } from "./dom.js"
import { count, duration, megabytes, percent } from "./format.js"
import { Spark } from "./plots.js"

const tones = /** @type {const} */ ({
  ready: "good",
  replaying: "warn",
  bootstrapping: "warn",
  suspect: "bad",
  overflowed: "bad"
})

const explained = {
  ready: "has everything, takes views",
  replaying: "catches up from the log",
  bootstrapping: "pulls the snapshot",
  suspect: "refuses connections, removed if it still does",
  overflowed: "fell too far behind, must bootstrap again"
}

const figures = /** @type {const} */ (["views", "tables", "jobs", "CPU", "memory", "heard"])

/**
 * Takes what it is sent: an SSP that is Ready by its last report and takes nothing serves no client. @param {any} ssp
 */
export const answers = (ssp) => ssp.state === "ready" && ssp.failures === 0

class SspCard {
  /** @param {string} id @param {(id: string) => void} open */
  constructor(id, open) {
    this.state = h("span", { class: "pill wait" })
    this.url = h("span", { class: "mono note clip" })
    this.fill = h("div", { class: "fill" })
    this.buffer = h("span", { class: "num" })
    this.why = h("span", { class: "note" })
    this.spark = new Spark()
    this.values = Object.fromEntries(figures.map((name) => [name, h("b", {}, "–")]))
    this.element = h(
      "li",
      { class: "ssp" },
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "link", title: "Its views", on: { click: () => open(id) } }, id),
        this.state,
        h("span", { class: "spacer" }),
        this.spark.element
      ),
      h("div", { class: "row" }, this.url, h("span", { class: "spacer" }), this.why),
      h("div", { class: "buffer" }, h("div", { class: "trough" }, this.fill), this.buffer),
      h("div", { class: "figures" }, ...figures.map((name) => h("span", {}, name, " ", this.values[name])))
    )
  }

  /** @param {any} ssp @param {number} maxBuffer @param {import("./samples.js").Samples} samples */
  show(ssp, maxBuffer, samples) {
    const state = /** @type {keyof typeof tones} */ (ssp.state)
    this.state.className = `pill ${state === "ready" && !answers(ssp) ? "bad" : tones[state]}`
    say(this.state, state === "ready" && !answers(ssp) ? "not answering" : state)
    say(this.url, ssp.url)
    say(
      this.why,
      state !== "suspect" && ssp.failures > 0
        ? `${count(ssp.failures)} deliveries failed in a row`
        : state === "ready"
          ? ssp.late
            ? "late, answers do not wait for it"
            : ""
          : `${explained[state]}, for ${duration(ssp.state_seconds)}`
    )
    const share = Math.min(1, ssp.waiting / maxBuffer)
    this.fill.style.setProperty("width", `${(share * 100).toFixed(1)}%`)
    this.fill.className = `fill ${share > 0.8 ? "bad" : share > 0.3 ? "warn" : ""}`
    say(this.buffer, state === "overflowed" ? "buffer dropped" : `${count(ssp.waiting)} of ${count(maxBuffer)} waiting`)
    this.spark.show(samples.values((sample) => sample.lag[ssp.id]))
    const values = [
      count(ssp.views),
      ssp.tables === null || ssp.tables.includes("*") ? "all" : count(ssp.tables.length),
      count(ssp.jobs),
      percent(ssp.cpu_usage),
      megabytes(ssp.memory_usage),
      `${duration(ssp.heard_seconds)} ago`
    ]
    figures.forEach((name, i) => say(/** @type {HTMLElement} */ (this.values[name]), values[i] ?? ""))
  }
}

export class ClusterMap {
  /** @param {(id: string) => void} open */
  constructor(open) {
    this.open = open
    /** @type {Map<string, SspCard>} */
    this.cards = new Map()
    this.ssps = h("ul", { class: "ssps" })
    this.head = h("div", { class: "note" })
    this.state = h("span", { class: "pill wait" })
    this.none = empty(
      "No SSP has registered",
      "Start one with ",
      h("code", {}, `SCHEDULER_URL=${location.origin} node dist/ssp.js`),
      " and it appears here."
    )
    this.element = h(
      "section",
      { class: "card map" },
      h("h2", {}, "Cluster"),
      h("div", { class: "scheduler" }, h("div", { class: "row" }, h("strong", {}, "scheduler"), this.state), this.head),
      this.none,
      this.ssps
    )
  }

  /** @param {any} o @param {import("./samples.js").Samples} samples */
  show(o, samples) {
    this.state.className = `pill ${o.status === "ready" ? "good" : "warn"}`
    say(this.state, o.status)
    const ready = o.ssps.filter(answers).length
    say(this.head, `${ready} of ${o.ssps.length} SSPs ready, ${count(o.views)} views, ${count(o.jobs)} unfinished jobs`)
    this.none.hidden = o.ssps.length > 0
    const seen = new Set(o.ssps.map((/** @type {any} */ { id }) => id))
    for (const [id, card] of this.cards) {
      if (seen.has(id)) continue
      card.element.remove()
      this.cards.delete(id)
    }
    for (const ssp of o.ssps) {
      let card = this.cards.get(ssp.id)
      if (card === undefined) {
        card = new SspCard(ssp.id, this.open)
        this.cards.set(ssp.id, card)
        this.ssps.append(card.element)
      }
      card.show(ssp, o.max_buffer_per_ssp, samples)
    }
  }
}
