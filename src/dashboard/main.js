/**
 * The page's heart: finds out which node it is on, asks for its overview once a second while it is visible, and shows
 * one section at a time.
 *
 * Nothing is asked while the tab is hidden, and one question at a time, so that a slow node is not asked twice.
 */
// @ts-check
import * as Address from "./address.js"
import { call, forgetSecrets, hasSecret, Refused } from "./api.js"
import { askSecret, Cancelled, isOpen, notice, showHelp } from "./dialogs.js"
import { byId, empty, h, say } from "./dom.js"
import { count, duration, visible } from "./format.js"
import { Jobs } from "./jobs.js"
import { Overview } from "./overview.js"
import { QueryBox } from "./queryBox.js"
import { Samples } from "./samples.js"
import { ViewList } from "./viewList.js"

const sections = ["overview", "views", "query", "jobs"]
const everyMs = 1000
const slowestMs = 10_000

const samples = new Samples()
/** @type {Overview} */
let overview
/** @type {{ [name: string]: { shown: (is: boolean, words: URLSearchParams) => void, told: (overview: any) => void } }} */
let parts = {}
/** @type {any} */
let latest
let failures = 0

const current = () => {
  const { section } = Address.read()
  return sections.includes(section) ? section : "overview"
}

const route = () => {
  const name = current()
  const { words } = Address.read()
  for (const section of sections) {
    byId(section).hidden = section !== name
    parts[section]?.shown(section === name, words)
  }
  for (const link of document.querySelectorAll("[data-tab]")) {
    if (link.getAttribute("data-tab") === name) link.setAttribute("aria-current", "page")
    else link.removeAttribute("aria-current")
  }
  if (latest !== undefined) parts[name]?.told(latest)
}

/** @param {"good" | "warn" | "bad" | "wait"} tone @param {string} word */
const status = (tone, word) => {
  const element = byId("node-status")
  element.className = `pill ${tone}`
  say(element, word)
  document.title = visible(`${byId("node-name").textContent} · ${word}`)
}

/** Figures that may no longer be so look like it. @param {boolean} is */
const stale = (is) => byId("content").classList.toggle("stale", is)

/** When the last answer came, on this page's clock. */
let heardAt = 0

const tones = /** @type {{ [status: string]: "good" | "warn" | "bad" }} */ ({
  ready: "good",
  frozen: "good",
  updating: "good",
  failed: "bad"
})

/** @param {any} o */
const show = (o) => {
  latest = o
  const lag =
    o.ssps === undefined
      ? { changes: o.pending.changes, edges: o.pending.edges }
      : Object.fromEntries(o.ssps.map((/** @type {any} */ { id, waiting }) => [id, waiting]))
  const sample = samples.add(
    o,
    performance.now() / 1000,
    o.seq !== null && o.ssps !== undefined ? o.seq : o.writes,
    lag
  )
  say(byId("node-name"), o.id)
  say(
    byId("node-sub"),
    `${o.ssps === undefined ? (o.mode === "scheduler" ? "SSP of a cluster" : "standalone SSP") : "scheduler"} · ${o.version}`
  )
  status(tones[o.status] ?? "warn", o.status)
  say(byId("views-count"), count(o.views))
  const jobs =
    typeof o.jobs === "number"
      ? o.jobs
      : o.jobs.reduce(
          (/** @type {number} */ sum, /** @type {any} */ { queued, running, waiting }) =>
            sum + queued + running + waiting,
          0
        )
  say(byId("jobs-count"), jobs === 0 ? "" : count(jobs))
  overview.show(o, samples, sample)
  parts[current()]?.told(o)
}

const tick = async () => {
  const begun = performance.now()
  try {
    const o = await call("/overview")
    failures = 0
    heardAt = begun
    notice(undefined)
    stale(false)
    show(o)
    if (o.status !== "ready" || Math.floor(begun / everyMs) % 5 === 0)
      overview.showTasks(o, (await call("/progress")).tasks ?? [])
  } catch (error) {
    if (error instanceof Refused && (error.status === 401 || error.code === "SCOPE_REQUIRED")) return gate(error)
    failures++
    status("bad", "no answer")
    stale(latest !== undefined)
    notice(
      `${error instanceof Refused && error.code !== undefined ? `${error.code}: ` : ""}${error instanceof Error ? error.message : String(error)} ${latest === undefined ? "Trying again." : `The figures below are ${duration((performance.now() - heardAt) / 1000)} old; trying again.`}`
    )
  }
  schedule(Math.max(100, Math.min(slowestMs, everyMs * 2 ** Math.min(failures, 4)) - (performance.now() - begun)))
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer
/** @param {number} ms */
const schedule = (ms) => {
  clearTimeout(timer)
  timer = document.hidden ? undefined : setTimeout(() => void tick(), ms)
}

/** Nothing can be shown without the secret: says so, and asks. @param {Refused} [refused] */
const gate = async (refused) => {
  status("wait", "locked")
  notice(undefined)
  latest = undefined
  stale(false)
  const wrong =
    refused !== undefined && hasSecret("node")
      ? `${refused.code ?? ""}: ${refused.status === 401 ? "that secret was refused" : refused.message}.`
      : undefined
  forgetSecrets()
  document.dispatchEvent(new Event("secret"))
  document.getElementById("gate")?.remove()
  const wall = h(
    "div",
    { id: "gate" },
    empty("Locked", "This node shows its figures to callers with its secret."),
    h(
      "p",
      { class: "centred" },
      h("button", { type: "button", class: "primary", on: { click: () => void unlock() } }, "Enter the secret")
    )
  )
  const unlock = async () => {
    try {
      await askSecret("node", wrong)
      wall.remove()
      byId("content").classList.remove("gated")
      await tick()
    } catch (cancelled) {
      if (!(cancelled instanceof Cancelled)) throw cancelled
    }
  }
  byId("content").classList.add("gated")
  byId("content").prepend(wall)
  await unlock()
}

const lockWord = () => {
  const unlocked = hasSecret("node") || hasSecret("ssp")
  const lock = byId("lock")
  say(lock, unlocked ? "Lock" : "Unlock")
  lock.title = unlocked ? "Forget the secret (u)" : "Give the secret (u)"
  lock.classList.toggle("on", unlocked)
}

/** @param {"ssp" | "scheduler"} kind */
const toggleLock = async (kind) => {
  if (hasSecret("node") || hasSecret("ssp")) {
    forgetSecrets()
    document.dispatchEvent(new Event("secret"))
    schedule(0)
    return
  }
  await askSecret(kind === "ssp" ? "node" : "ssp").catch((error) => {
    if (!(error instanceof Cancelled)) throw error
  })
  schedule(0)
}

const toggleTheme = () => {
  const root = document.documentElement
  const dark =
    root.dataset["theme"] === "dark" ||
    (root.dataset["theme"] === undefined && matchMedia("(prefers-color-scheme: dark)").matches)
  root.dataset["theme"] = dark ? "light" : "dark"
  try {
    localStorage.setItem("theme", root.dataset["theme"])
  } catch {
    /* Then it holds for this page only. */
  }
  overview.redraw()
}

/** @param {HTMLElement | null} from @param {number} step */
const moveRow = (from, step) => {
  const rows = /** @type {Array<HTMLElement>} */ ([...document.querySelectorAll(`#${current()} [data-row]`)])
  const at = from === null ? -1 : rows.indexOf(from)
  rows[Math.min(rows.length - 1, Math.max(0, at + step))]?.focus()
}

/** @param {KeyboardEvent} event @param {"ssp" | "scheduler"} kind */
const onKey = (event, kind) => {
  const target = /** @type {HTMLElement} */ (event.target)
  if (event.ctrlKey || event.metaKey || event.altKey || isOpen() || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    return
  const section = sections[Number(event.key) - 1]
  const row = /** @type {HTMLElement | null} */ (target.closest("[data-row]"))
  if (section !== undefined) location.hash = section
  else if (event.key === "t") toggleTheme()
  else if (event.key === "u") void toggleLock(kind)
  else if (event.key === "?") showHelp()
  else if (event.key === "j") moveRow(row, 1)
  else if (event.key === "k") moveRow(row, -1)
  else if (event.key === "/") {
    event.preventDefault()
    location.hash = "views"
    route()
    document.getElementById("search")?.focus()
  }
}

const start = async () => {
  // Both answer it; only a scheduler that asks for a secret refuses.
  const info = await call("/info").catch(() => [])
  const kind = info[0]?.entity === "ssp" ? "ssp" : "scheduler"
  document.body.dataset["kind"] = kind
  say(byId("node-name"), info[0]?.id ?? "scheduler")
  say(byId("node-sub"), kind === "ssp" ? "SSP" : "scheduler")
  const views = new ViewList(kind)
  overview = new Overview(kind, (id) => {
    views.ofSsp(id)
    location.hash = "views"
  })
  parts = { views, query: new QueryBox(kind), jobs: new Jobs(kind) }
  lockWord()
  byId("theme").addEventListener("click", toggleTheme)
  byId("help").addEventListener("click", showHelp)
  byId("lock").addEventListener("click", () => void toggleLock(kind))
  document.addEventListener("secret", lockWord)
  document.addEventListener("keydown", (event) => onKey(event, kind))
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : schedule(0)))
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => overview.redraw())
  addEventListener("hashchange", route)
  route()
  // On an SSP everything needs the secret: it is asked for before anything is refused.
  await (kind === "ssp" ? gate() : tick())
}

void start()
