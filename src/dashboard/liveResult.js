/**
 * A view's result as it changes: follows the event stream, reads the rows again when they changed, and marks what is
 * new.
 *
 * Deltas name rows and versions, not their content, so the rows are read again, at most once a second and only while
 * there are few; of a large result the ids are shown, so that looking at a view costs the service no more than any
 * client does.
 */
// @ts-check
import { call, follow, Refused } from "./api.js"
import { columnsOf, inOrder } from "./columns.js"
import { Cancelled, unlocked } from "./dialogs.js"
import { empty, failure, h, keep, pill, say } from "./dom.js"
import { brief, count, duration } from "./format.js"

/** Rows that are read again with their content, and rows that are shown. */
const maxWhole = 1000
const maxShown = 200
const maxColumns = 12
const readEveryMs = 1000

/** Ends after which the view is somewhere else, or will be. */
const passing = new Set(["moved", "rebootstrap", "shutdown", "replaced", "behind"])

/** @typedef {{ key: string, cells: ReadonlyArray<unknown> }} Row */

export class LiveResult {
  /** @param {import("./api.js").Door} door @param {string} query */
  constructor(door, query) {
    this.door = door
    /** In the order of the query. */
    this.named = columnsOf(query)
    this.state = pill("wait", "connecting")
    this.stats = h("span", { class: "note" })
    this.head = h("thead", {})
    this.body = h("tbody", {})
    this.note = h("div", {})
    this.element = h(
      "div",
      { class: "live" },
      h("div", { class: "row" }, h("strong", {}, "Result"), this.state, this.stats),
      this.note,
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "group", "aria-label": "Rows of the result" },
        h("table", { class: "result", "aria-label": "Result" }, this.head, this.body)
      )
    )
    /** @type {AbortController | undefined} */
    this.abort = undefined
    /** @type {Map<string, { text: string, element: HTMLElement }>} */
    this.rows = new Map()
    this.columns = ""
    this.size = 0
    this.changes = 0
    this.lastAt = 0
    this.readAt = 0
    /** Whether the rows shown may not be the last. */
    this.stale = false
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined
  }

  /** @param {"good" | "warn" | "bad" | "wait" | "calm"} tone @param {string} word */
  say(tone, word) {
    this.state.className = `pill ${tone}`
    say(this.state, word)
  }

  /** Follows the view until {@link stop}. @param {string} id */
  async start(id) {
    const abort = new AbortController()
    this.abort = abort
    const path = `/view/${encodeURIComponent(id)}`
    const clock = setInterval(() => this.tell(), 1000)
    abort.signal.addEventListener("abort", () => clearInterval(clock))
    for (let wait = 500; !abort.signal.aborted; wait = Math.min(8000, wait * 2)) {
      try {
        const over = await unlocked(() => this.once(path, abort.signal))
        if (over !== undefined) return this.ended(over)
        wait = 500
      } catch (error) {
        if (abort.signal.aborted) return
        if (error instanceof Cancelled) return this.ended("locked")
        if (!(error instanceof Refused)) this.say("warn", "reconnecting")
        else if (error.status === 404 || error.status === 400) {
          this.note.replaceChildren(failure(error))
          return this.ended("gone")
        } else {
          this.say("warn", "reconnecting")
          this.note.replaceChildren(failure(error))
        }
      }
      await new Promise((done) => setTimeout(done, wait))
    }
  }

  /**
   * One stream from its snapshot to its end; the reason, where nothing comes after it. @param {string} path @param
   * {AbortSignal} signal @returns {Promise<string | undefined>}
   */
  async once(path, signal) {
    /** @type {string | undefined} */
    let reason
    await follow(`${path}/stream?format=flat`, { door: this.door, signal }, (event, data) => {
      if (event === "end") reason = data.reason
      else if (event === "snapshot") this.snapshot(path, data.result_data, signal)
      else if (event === "delta") this.delta(path, data, signal)
    })
    return reason !== undefined && !passing.has(reason) ? reason : undefined
  }

  /** @param {string} path @param {ReadonlyArray<readonly [string, number]>} flat @param {AbortSignal} signal */
  snapshot(path, flat, signal) {
    this.say("good", "live")
    this.size = flat.length
    this.note.replaceChildren()
    if (flat.length <= maxWhole) this.read(path, signal)
    else {
      this.note.replaceChildren(
        h(
          "p",
          { class: "note" },
          `${count(flat.length)} rows are too many to read again at every change: the ids and versions of the first ${maxShown}, as they were.`
        )
      )
      this.paint(
        ["id", "version"],
        flat.slice(0, maxShown).map(([key, version]) => ({ key, cells: [key, version] }))
      )
    }
    this.tell()
  }

  /** @param {string} path @param {any} delta @param {AbortSignal} signal */
  delta(path, { additions, removals, updates }, signal) {
    this.changes += additions.length + removals.length + updates.length
    this.size += additions.length - removals.length
    this.lastAt = performance.now()
    this.tell()
    if (this.size <= maxWhole) this.read(path, signal)
  }

  tell() {
    const last =
      this.lastAt === 0
        ? "no change yet"
        : `${count(this.changes)} ${this.changes === 1 ? "change" : "changes"}, the last ${duration((performance.now() - this.lastAt) / 1000)} ago`
    say(this.stats, `${count(this.size)} rows, ${last}`)
  }

  /**
   * Soon, and not again before it is due. A change that comes while the rows are on their way, and a read that failed,
   * have them read once more: no later delta need come that would. @param {string} path @param {AbortSignal} signal
   */
  read(path, signal) {
    this.stale = true
    if (this.timer !== undefined) return
    this.timer = setTimeout(
      async () => {
        this.readAt = performance.now()
        this.stale = false
        // Where it failed, the stream says what is wrong.
        const answer = await call(`${path}?format=tree`, { door: this.door, signal }).catch(() => undefined)
        if (answer === undefined) this.stale = true
        else {
          const { errors, result_data: data } = answer
          this.show(data)
          if (errors !== undefined)
            this.note.replaceChildren(
              h(
                "p",
                { class: "note" },
                `${count(errors.length)} rows are left out because an expression fails on them: ${brief(errors[0]?.id, 60)}, ${brief(errors[0]?.reason, 160)}`
              )
            )
        }
        this.timer = undefined
        if (this.stale && !signal.aborted) this.read(path, signal)
      },
      Math.max(0, this.readAt + readEveryMs - performance.now())
    )
  }

  /** @param {unknown} data */
  show(data) {
    const values = Array.isArray(data) ? data : data === null ? [] : [data]
    this.size = values.length
    this.tell()
    const isObject = (/** @type {unknown} */ value) =>
      typeof value === "object" && value !== null && !Array.isArray(value)
    const names = new Set(values.slice(0, 50).flatMap((value) => (isObject(value) ? Object.keys(value) : ["value"])))
    const columns = inOrder([...names], this.named).slice(0, maxColumns)
    const seen = new Map()
    const rows = values.slice(0, maxShown).map((value, i) => {
      const name = isObject(value) && typeof value.id === "string" ? value.id : String(i)
      const n = seen.get(name) ?? 0
      seen.set(name, n + 1)
      return {
        key: `${name} ${n}`,
        cells: columns.map((column) => (isObject(value) ? value[column] : column === "value" ? value : undefined))
      }
    })
    this.paint(columns, rows)
    if (values.length > maxShown)
      this.note.replaceChildren(h("p", { class: "note" }, `The first ${maxShown} of ${count(values.length)} rows.`))
  }

  /**
   * Rows that are as they were stay as they are. @param {ReadonlyArray<string>} columns @param {ReadonlyArray<Row>}
   * rows
   */
  paint(columns, rows) {
    const first = this.columns === ""
    const key = JSON.stringify(columns)
    if (key !== this.columns) {
      this.columns = key
      this.rows.clear()
      this.head.replaceChildren(
        h(
          "tr",
          {},
          ...columns.map((column, i) =>
            h(
              "th",
              { class: rows.length > 0 && rows.every(({ cells }) => typeof cells[i] === "number") ? "num" : undefined },
              column
            )
          )
        )
      )
    }
    this.rows = keep(
      this.body,
      this.rows,
      rows,
      ({ key }) => key,
      ({ cells }, isNew) =>
        h(
          "tr",
          first ? {} : { class: isNew ? "added" : "changed" },
          ...cells.map((cell) => h("td", { class: typeof cell === "number" ? "num" : "clip" }, brief(cell)))
        )
    )
    if (rows.length === 0)
      this.body.replaceChildren(
        h(
          "tr",
          {},
          h(
            "td",
            { colspan: Math.max(1, columns.length) },
            empty("No rows", "The query matches nothing now. Rows appear here as soon as a change makes them match.")
          )
        )
      )
  }

  /** @param {string} reason */
  ended(reason) {
    this.stop()
    this.say("calm", reason)
  }

  stop() {
    this.abort?.abort()
    clearTimeout(this.timer)
    this.timer = undefined
    this.say("calm", "stopped")
  }
}
