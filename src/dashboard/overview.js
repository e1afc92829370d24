/**
 * The first page: figures of now, plots of the last minutes, the cluster or the node itself, its log and snapshot, and
 * long work.
 *
 * Built once; each second only texts that differ are set, so that an open page costs next to nothing.
 */
// @ts-check

import { answers, ClusterMap } from "./clusterMap.js"
import { byId, empty, h, say } from "./dom.js"
import { count, duration, megabytes, memory, millis, percent, rate } from "./format.js"
import { Plot, palette, Spark } from "./plots.js"

/** @typedef {{ name: HTMLElement, value: HTMLElement, note: HTMLElement, spark: Spark | undefined }} Tile */

/** @param {string} label @param {boolean} sparkling */
const tile = (label, sparkling) => {
  const value = h("div", { class: "value" }, "–")
  const note = h("div", { class: "note" })
  const spark = sparkling ? new Spark() : undefined
  const name = h("div", { class: "label" }, label)
  return {
    element: h("div", { class: "tile card" }, name, value, note, spark?.element),
    name,
    value,
    note,
    spark
  }
}

/** @param {Tile} tile @param {string} value @param {string} note */
const show = (tile, value, note) => {
  say(tile.value, value)
  say(tile.note, note)
}

/** Pairs of a name and a figure, built once and told anew. */
class Facts {
  /** @param {string} title */
  constructor(title) {
    this.list = h("dl", { class: "facts" })
    this.element = h("section", { class: "card" }, h("h2", {}, title), this.list)
    /** @type {Map<string, HTMLElement>} */
    this.known = new Map()
  }

  /** @param {ReadonlyArray<readonly [string, string]>} facts */
  show(facts) {
    for (const [name, value] of facts) {
      let element = this.known.get(name)
      if (element === undefined) {
        element = h("dd", {})
        this.known.set(name, element)
        this.list.append(h("div", {}, h("dt", {}, name), element))
      }
      say(element, value)
    }
  }
}

/** @param {any} log @param {any} o */
const logFacts = (log, o) =>
  /** @type {const} */ ([
    ["Position", `seq ${count(o.seq)}`],
    ["In the log", `${count(log.events)} events`],
    ["Oldest kept", log.events === 0 ? "none" : `seq ${count(log.first)}`],
    [
      "Snapshot",
      o.snapshot === null
        ? "thawed, no SSP bootstraps"
        : `frozen at ${count(o.snapshot.seq)} for ${duration(o.snapshot.age_seconds)}`
    ],
    ["Held for", o.snapshot === null ? "no SSP" : o.snapshot.owners.join(", ")],
    ["Checkpoint", o.checkpointing ? "under way" : "idle"],
    ["Epoch", count(log.epoch)],
    ["Log id", log.id]
  ])

/** @param {any} o */
const storeFacts = (o) =>
  /** @type {const} */ ([
    ["Store", o.store],
    ["Records", `${count(o.records)}, about ${memory(o.record_bytes)}`],
    ["Writes", count(o.writes)],
    ["Position", o.seq === null ? "standalone, no log" : `seq ${count(o.seq)}`],
    ["Waiting changes", `${count(o.pending.changes)} of ${count(o.pending.max_changes)}`],
    ["Waiting edges", `${count(o.pending.edges)} of ${count(o.pending.max_edges)}`],
    ["Streams", `${count(o.streams)} of ${count(o.max_streams)}`],
    ["Views", `${count(o.views)} of ${count(o.max_views)}`]
  ])

/** Which views of a cluster no SSP serves now. @param {any} o */
const unserved = (o) => {
  const silent = o.ssps
    .filter((/** @type {any} */ ssp) => !answers(ssp))
    .reduce((/** @type {number} */ sum, /** @type {any} */ { views }) => sum + views, 0)
  const said = [
    ...(o.views_waiting > 0 ? [`${count(o.views_waiting)} wait for an SSP`] : []),
    ...(silent > 0 ? [`${count(silent)} on an SSP that does not answer`] : [])
  ]
  return said.length === 0 ? "all placed" : said.join(", ")
}

/** @param {number} share */
const bar = (share) => h("progress", { max: 1, value: Math.min(1, Math.max(0, share)).toFixed(3) })

/** @param {any} task */
const taskRow = (task) =>
  h(
    "li",
    {},
    h(
      "div",
      { class: "row" },
      h("strong", {}, task.kind),
      h("span", { class: "mono clip" }, `${task.of}${task.at === null ? "" : ` · ${task.at}`}`),
      h(
        "span",
        { class: "num" },
        task.total === null
          ? `${count(task.done)} ${task.unit}`
          : `${count(task.done)} of ${count(task.total)} ${task.unit}`
      )
    ),
    task.total === null ? h("progress", {}) : bar(task.total === 0 ? 1 : task.done / task.total),
    h(
      "div",
      { class: "note" },
      `${rate(task.per_second)} a second`,
      task.remaining_seconds === null ? "" : `, about ${duration(task.remaining_seconds)} to go`
    )
  )

/** @param {{ id: string, query: string | null, ends: number, last: string }} aside */
const asideRow = ({ ends, id, last, query }) =>
  h(
    "li",
    {},
    h(
      "div",
      { class: "row" },
      h("strong", { class: "mono clip" }, id),
      h("span", { class: "num" }, `${count(ends)} processes ended in it, last ${last}`)
    ),
    ...(query === null ? [] : [h("div", { class: "mono clip" }, query)]),
    h(
      "div",
      { class: "note" },
      "Neither filled nor maintained. ",
      h("code", {}, "POST /view/free"),
      " with its id serves it again."
    )
  )

/** @type {{ readonly [durability: string]: string }} */
const durable = {
  flushed: "an answered change is on the server's disk",
  replicated: "an answered change is on most of the servers",
  relaxed: "an answered change may be lost when the server crashes"
}

/** @param {{ id: string, url: string, synced: number, waiting: number }} scheduler @param {string | null} leader */
const schedulerRow = ({ id, synced, url, waiting }, leader) =>
  h(
    "tr",
    {},
    h("td", { class: "clip" }, id),
    h("td", {}, h("span", { class: `pill ${id === leader ? "good" : "wait"}` }, id === leader ? "leads" : "stands by")),
    h("td", { class: "num" }, waiting === 0 ? "up to date" : `lacks ${count(waiting)}`),
    h("td", { class: "num" }, `seq ${count(synced)}`),
    h("td", { class: "mono note clip" }, url)
  )

/** Who leads the log of SVC_LOG_URL, and how far the replicas of the others are. */
class Schedulers {
  constructor() {
    this.note = h("p", { class: "note" })
    this.rows = h("tbody", {})
    this.element = h(
      "section",
      { class: "card", hidden: true },
      h("h2", {}, "Schedulers of the log"),
      h(
        "table",
        { "aria-label": "Schedulers" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, "Scheduler"),
            h("th", {}, ""),
            h("th", { class: "num" }, "Replica"),
            h("th", { class: "num" }, "On its disk"),
            h("th", {}, "Address")
          )
        ),
        this.rows
      ),
      this.note
    )
    this.key = ""
  }

  /** @param {any} log */
  show(log) {
    const key = JSON.stringify(log)
    if (key === this.key) return
    this.key = key
    this.element.hidden = log === undefined
    if (log === undefined) return
    say(this.note, `Term ${count(log.epoch)}; ${durable[log.durability] ?? log.durability}.`)
    this.rows.replaceChildren(
      ...log.schedulers.map((/** @type {any} */ scheduler) => schedulerRow(scheduler, log.leader))
    )
  }
}

export class Overview {
  /** @param {"ssp" | "scheduler"} kind @param {(id: string) => void} openSsp */
  constructor(kind, openSsp) {
    this.kind = kind
    this.tiles = {
      events: tile("Events per second", true),
      latency: tile("Ingest latency p99", true),
      lag: tile(kind === "scheduler" ? "Furthest behind" : "Waiting for the store", true),
      views: tile("Views", false),
      used: tile("CPU", true)
    }
    this.plots = {
      events: new Plot("Events per second", rate),
      latency: new Plot("Ingest latency", millis),
      lag: new Plot(kind === "scheduler" ? "Events each SSP lacks" : "Changes and edges waiting", count, true)
    }
    this.map = kind === "scheduler" ? new ClusterMap(openSsp) : undefined
    this.schedulers = new Schedulers()
    this.facts = new Facts(kind === "scheduler" ? "Log and snapshot" : "Store")
    this.tables = h("tbody", {})
    this.tasks = h("ul", { class: "tasks" })
    this.long = h("section", { class: "card", hidden: true }, h("h2", {}, "Long work"), this.tasks)
    this.warnings = h("ul", { class: "tasks" })
    this.warningsCard = h("section", { class: "card", hidden: true }, h("h2", {}, "Warnings"), this.warnings)
    this.warningsKey = ""
    this.aside = h("ul", { class: "tasks" })
    this.asideCard = h("section", { class: "card", hidden: true }, h("h2", {}, "Quarantined views"), this.aside)
    this.tableKey = ""
    byId("overview").replaceChildren(
      h("div", { class: "tiles" }, ...Object.values(this.tiles).map(({ element }) => element)),
      this.warningsCard,
      this.asideCard,
      this.long,
      h("div", { class: "plots" }, ...Object.values(this.plots).map(({ element }) => element)),
      h("div", { class: "split" }, this.map?.element ?? this.tableCard(), this.facts.element),
      this.schedulers.element
    )
  }

  tableCard() {
    return h(
      "section",
      { class: "card" },
      h("h2", {}, "Tables"),
      h(
        "table",
        { "aria-label": "Tables" },
        h(
          "thead",
          {},
          h("tr", {}, h("th", {}, "Table"), h("th", { class: "num" }, "Records"), h("th", { class: "num" }, "Memory"))
        ),
        this.tables
      )
    )
  }

  /** @param {any} o @param {import("./samples.js").Samples} samples @param {import("./samples.js").Sample} sample */
  show(o, samples, sample) {
    const { events, lag, latency, used, views } = this.tiles
    const lags = Object.entries(sample.lag)
    const worst = lags.reduce((most, each) => (each[1] > most[1] ? each : most), ["", 0])
    show(
      events,
      rate(sample.events ?? undefined),
      this.kind === "scheduler" ? `seq ${count(o.seq)}` : `${count(o.writes)} writes in all`
    )
    const way = o.feed ? "Feed latency" : "Ingest latency"
    say(latency.name, `${way} p99`)
    this.plots.latency.call(way)
    show(
      latency,
      millis(sample.p99),
      sample.p50 === null ? "nothing came in this second" : `median ${millis(sample.p50)}`
    )
    show(
      lag,
      count(worst[1]),
      worst[1] === 0
        ? this.kind === "scheduler" && o.ssps.length === 0
          ? "no SSP yet"
          : "all up to date"
        : `${worst[0]}`
    )
    show(views, count(o.views), this.kind === "scheduler" ? unserved(o) : `${count(o.streams)} followed now`)
    show(
      used,
      percent(sample.cpu),
      o.used === null
        ? `up ${duration(o.uptime_seconds)}`
        : `${megabytes(o.used.memory_megabytes)}, up ${duration(o.uptime_seconds)}`
    )
    events.spark?.show(samples.values((s) => s.events))
    latency.spark?.show(samples.values((s) => s.p99))
    lag.spark?.show(samples.values((s) => Math.max(0, ...Object.values(s.lag))))
    used.spark?.show(samples.values((s) => s.cpu))
    this.showWarnings(o.warnings)
    this.asideCard.hidden = o.quarantined.length === 0
    this.aside.replaceChildren(...o.quarantined.map(asideRow))
    if (byId("overview").hidden) return
    this.plots.events.show(samples, [{ label: "now", colour: palette[0] ?? "", read: (s) => s.events }])
    this.plots.latency.show(samples, [
      { label: "median", colour: palette[1] ?? "", read: (s) => s.p50 },
      { label: "p99", colour: palette[2] ?? "", read: (s) => s.p99 }
    ])
    this.plots.lag.show(
      samples,
      lags
        .slice(0, palette.length)
        .map(([label], i) => ({ label, colour: palette[i] ?? "", read: (s) => s.lag[label] }))
    )
    this.map?.show(o, samples)
    this.schedulers.show(o.shared_log)
    this.facts.show(this.kind === "scheduler" ? logFacts(o.log, o) : storeFacts(o))
    if (this.kind === "ssp") this.showTables(o.tables)
  }

  /** @param {ReadonlyArray<string>} warnings */
  showWarnings(warnings) {
    const key = JSON.stringify(warnings)
    if (key === this.warningsKey) return
    this.warningsKey = key
    this.warningsCard.hidden = warnings.length === 0
    this.warnings.replaceChildren(...warnings.map((warning) => h("li", {}, warning)))
  }

  /** @param {ReadonlyArray<{ table: string, records: number, bytes: number }>} tables */
  showTables(tables) {
    const key = JSON.stringify(tables)
    if (key === this.tableKey) return
    this.tableKey = key
    this.tables.replaceChildren(
      ...(tables.length === 0
        ? [
            h(
              "tr",
              {},
              h(
                "td",
                { colspan: 3 },
                empty(
                  "No records yet",
                  "Send a change to ",
                  h("code", {}, "POST /ingest"),
                  ", or let the database's events do it."
                )
              )
            )
          ]
        : tables.map(({ bytes, records, table }) =>
            h(
              "tr",
              {},
              h("td", { class: "mono clip" }, table),
              h("td", { class: "num" }, count(records)),
              h("td", { class: "num" }, memory(bytes))
            )
          ))
    )
  }

  /** @param {any} o @param {ReadonlyArray<any>} tasks */
  showTasks(o, tasks) {
    const clone =
      o.clone === undefined || o.clone === null || tasks.length > 0
        ? []
        : [
            {
              kind: "clone",
              of: o.clone.table,
              at: `walk ${o.clone.walk}, ${count(o.clone.written)} written`,
              unit: "records compared",
              done: o.clone.compared,
              total: null,
              per_second: 0,
              remaining_seconds: null
            }
          ]
    const all = [...tasks, ...clone]
    this.long.hidden = all.length === 0
    this.tasks.replaceChildren(...all.map(taskRow))
  }

  redraw() {
    for (const plot of Object.values(this.plots)) plot.redraw()
  }
}
