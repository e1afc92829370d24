/**
 * Jobs by table and state, each with its errors, to be run again or cancelled after a question.
 *
 * The only place of this dashboard that changes records of the application.
 */
// @ts-check
import * as Address from "./address.js"
import { call, Refused } from "./api.js"
import { Cancelled, confirmed, unlocked } from "./dialogs.js"
import { byId, empty, failure, h, keep, pageTurners, pill, since, tellTimes } from "./dom.js"
import { brief, count } from "./format.js"

const pageSize = 50
const everyMs = 3000
/** Characters of a payload and of an answer. */
const maxContent = 4000

const statuses = /** @type {const} */ ([
  ["pending", "wait"],
  ["processing", "warn"],
  ["success", "good"],
  ["failed", "bad"]
])

/** @param {any} error */
const errorLine = (error) =>
  h(
    "li",
    {},
    h("b", { class: "num" }, error?.attempt === 0 ? "operator" : `attempt ${error?.attempt ?? "?"}`),
    " ",
    error?.code ? h("code", {}, String(error.code)) : null,
    " ",
    brief(error?.reason, 400),
    " ",
    h("span", { class: "note" }, typeof error?.at === "string" ? since(error.at) : null)
  )

/** JSON that was sent or answered, its beginning where it is long; nothing where there is none. @param {string} word
 * @param {unknown} json */
const content = (word, json) =>
  json === null || json === undefined
    ? null
    : h("details", {}, h("summary", {}, word), h("code", { class: "wrap" }, brief(JSON.stringify(json), maxContent)))

export class Jobs {
  /** @param {"ssp" | "scheduler"} kind */
  constructor(kind) {
    this.kind = kind
    /** @type {import("./api.js").Door} */
    this.door = kind === "ssp" ? "node" : "ssp"
    /** @type {string | undefined} */
    this.table = undefined
    /** @type {string} */
    this.status = "failed"
    /** @type {Array<string>} */
    this.behind = []
    /** @type {string | null} */
    this.next = null
    this.askedAt = Number.NEGATIVE_INFINITY
    /** @type {Map<string, { text: string, element: HTMLElement }>} */
    this.rows = new Map()
    this.known = ""
    this.tables = h("div", { class: "chips", role: "group", "aria-label": "Job table" })
    this.states = h("div", { class: "chips", role: "group", "aria-label": "Status" })
    this.message = h("div", {})
    this.body = h("tbody", {})
    const { back, forth } = pageTurners((by) => this.turn(by))
    this.back = back
    this.forth = forth
    this.list = h(
      "div",
      { class: "card scroll" },
      h(
        "table",
        { class: "rows", "aria-label": "Jobs" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, "Job"),
            h("th", {}, "State"),
            h("th", { class: "optional" }, "Path"),
            h("th", {}, "Sent, errors, answer"),
            h("th", { class: "optional" }, "Runs on"),
            h("th", { class: "num optional" }, "Changed"),
            h("th", {}, h("span", { class: "unseen" }, "Action"))
          )
        ),
        this.body
      )
    )
    byId("jobs").replaceChildren(
      h("div", { class: "bar" }, this.tables, this.states, h("span", { class: "spacer" }), this.back, this.forth),
      this.message,
      this.list
    )
    this.showStates()
  }

  /** @param {boolean} is @param {URLSearchParams} words */
  shown(is, words) {
    this.askedAt = Number.NEGATIVE_INFINITY
    if (!is) return
    const status = words.get("status")
    if (status !== null && statuses.some(([known]) => known === status)) {
      this.status = status
      this.table = words.get("table") ?? this.table
      this.behind = []
      this.showStates()
    } else this.tellAddress()
  }

  tellAddress() {
    Address.write("jobs", { table: this.table ?? "", status: this.status })
  }

  /** @param {any} o */
  told(o) {
    const running = typeof o.jobs === "number" ? [] : o.jobs
    const names =
      typeof o.jobs === "number"
        ? [
            ...new Set([
              ...(o.job_tables ?? []),
              ...o.ssps.flatMap((/** @type {any} */ { job_tables: tables }) => tables ?? [])
            ])
          ]
        : running.map((/** @type {any} */ { table }) => table)
    this.showTables(names, running)
    if (names.length === 0) {
      this.list.hidden = true
      this.message.replaceChildren(
        empty(
          "No job tables",
          "Name tables and their backends in ",
          h("code", {}, "svc.yml"),
          " (job_tables); their pending records are then called as jobs and show here."
        )
      )
      return
    }
    this.list.hidden = false
    if (performance.now() - this.askedAt > everyMs && !document.hidden) void this.load()
  }

  /** @param {ReadonlyArray<string>} names @param {ReadonlyArray<any>} running */
  showTables(names, running) {
    if (this.table === undefined || !names.includes(this.table)) this.table = names[0]
    const key = JSON.stringify([names, this.table, running])
    if (key === this.known) return
    this.known = key
    this.tables.replaceChildren(
      ...names.map((name) => {
        const figures = running.find(({ table }) => table === name)
        return h(
          "button",
          {
            type: "button",
            class: "chip mono",
            "aria-pressed": String(name === this.table),
            on: { click: () => this.choose(name, this.status) }
          },
          name,
          figures === undefined || figures.running + figures.queued + figures.waiting === 0
            ? null
            : h(
                "span",
                { class: "note" },
                ` ${count(figures.running)} running, ${count(figures.queued)} queued, ${count(figures.waiting)} to retry`
              )
        )
      })
    )
  }

  showStates() {
    this.states.replaceChildren(
      ...statuses.map(([status]) =>
        h(
          "button",
          {
            type: "button",
            class: "chip",
            "aria-pressed": String(status === this.status),
            on: { click: () => this.choose(this.table, status) }
          },
          status
        )
      )
    )
  }

  /** @param {string | undefined} table @param {string} status */
  choose(table, status) {
    this.table = table
    this.status = status
    this.behind = []
    this.known = ""
    this.showStates()
    this.tellAddress()
    void this.load()
  }

  /** @param {number} step */
  turn(step) {
    if (step > 0 && this.next !== null) this.behind.push(this.next)
    else if (step < 0) this.behind.pop()
    void this.load()
  }

  async load() {
    if (this.table === undefined) return
    this.askedAt = performance.now()
    const after = this.behind.at(-1)
    const words = new URLSearchParams({
      table: this.table,
      status: this.status,
      limit: String(pageSize),
      ...(after === undefined ? {} : { after })
    })
    try {
      this.show(await unlocked(() => call(`/jobs?${words}`, { door: this.door })))
    } catch (error) {
      this.askedAt = error instanceof Cancelled ? Number.POSITIVE_INFINITY : this.askedAt
      this.rows = keep(this.body, new Map(), [], String, () => h("tr"))
      this.message.replaceChildren(
        error instanceof Cancelled
          ? empty(
              "Locked",
              "Jobs are shown to callers with the secret: ",
              h("button", { type: "button", class: "link", on: { click: () => void this.load() } }, "enter it"),
              "."
            )
          : failure(error instanceof Refused ? error : { message: String(error) })
      )
    }
  }

  /** @param {{ jobs: ReadonlyArray<any>, next: string | null }} answer */
  show({ jobs, next }) {
    this.next = next
    this.back.disabled = this.behind.length === 0
    this.forth.disabled = next === null
    this.message.replaceChildren()
    this.rows = keep(
      this.body,
      this.rows,
      jobs,
      ({ id }) => id,
      (job) => this.row(job)
    )
    tellTimes(this.body)
    if (jobs.length === 0)
      this.body.replaceChildren(
        h(
          "tr",
          {},
          h(
            "td",
            { colspan: 7 },
            empty(
              `No ${this.status} jobs`,
              this.status === "failed"
                ? "Nothing to look after. Other states are a click away."
                : "Jobs show here while they are in this state."
            )
          )
        )
      )
  }

  /** @param {any} job */
  row(job) {
    const tone = statuses.find(([status]) => status === job.status)?.[1] ?? "calm"
    const last = job.errors.at(-1)
    return h(
      "tr",
      { tabindex: 0, "data-row": job.id },
      h("td", { class: "mono clip id" }, brief(job.id, 60)),
      h("td", {}, pill(tone, job.status)),
      h("td", { class: "mono clip optional" }, brief(job.path, 60)),
      h(
        "td",
        {},
        content("payload", job.payload),
        job.errors.length === 0
          ? null
          : h(
              "details",
              {},
              h(
                "summary",
                {},
                `${count(job.errors.length)} · ${last?.code ? `${last.code} ` : ""}${brief(last?.reason, 60)}`
              ),
              h("ul", { class: "errors" }, ...job.errors.map(errorLine))
            ),
        content("answer", job.result)
      ),
      h("td", { class: "mono optional" }, job.holder ?? "–"),
      h("td", { class: "num optional" }, since(job.updated_at)),
      h(
        "td",
        { class: "num" },
        job.status === "failed"
          ? this.button(job, "retry", "Retry", "ghost small")
          : job.status === "success"
            ? null
            : this.button(job, "cancel", "Cancel", "ghost small danger")
      )
    )
  }

  /** @param {any} job @param {"retry" | "cancel"} what @param {string} word @param {string} look */
  button(job, what, word, look) {
    const text =
      what === "retry"
        ? `${job.id} is called again at once, with its attempts counted anew.`
        : `${job.id} becomes failed and is not called again; a call under way on its SSP is cut off.`
    return h(
      "button",
      {
        type: "button",
        class: look,
        on: {
          click: () =>
            void confirmed(`${word} this job?`, text, `${word} it`).then((yes) =>
              yes ? this.act(job, what) : undefined
            )
        }
      },
      word
    )
  }

  /** @param {any} job @param {"retry" | "cancel"} what */
  async act(job, what) {
    try {
      await unlocked(() => call(`/jobs/${encodeURIComponent(job.id)}/${what}`, { method: "POST", door: this.door }))
      await this.load()
    } catch (error) {
      if (!(error instanceof Cancelled))
        this.message.replaceChildren(failure(error instanceof Refused ? error : { message: String(error) }))
    }
  }
}
