/**
 * Live plots: lines over the last minutes with uPlot, and sparklines in a few points.
 *
 * Colours are read from the style at every draw, so that a change of the theme is a redraw and nothing else.
 */
// @ts-check
import { h, say } from "./dom.js"
import { span } from "./samples.js"

/**
 * @typedef {{ label: string, colour: string, read: (sample: import("./samples.js").Sample) => number | null | undefined
 * }} Line
 */

const colour = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** Names of colours for lines whose number is not known. */
export const palette = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"]

const axis = (/** @type {object} */ more) => ({
  stroke: () => colour("--muted"),
  font: "11px system-ui, sans-serif",
  ticks: { show: false },
  grid: { stroke: () => colour("--grid"), width: 1 },
  ...more
})

/**
 * Times of day on an axis, to the second where a minute has several marks. @param {any} _ @param
 * {ReadonlyArray<number>} at @param {number} _axis @param {number} _space @param {number} step
 */
const clock = (_, at, _axis, _space, step) =>
  at.map((s) => new Date(s * 1000).toTimeString().slice(0, step < 60 ? 8 : 5))

const wholeSteps = [1, 2, 5]
  .flatMap((n) => Array.from({ length: 9 }, (_, power) => n * 10 ** power))
  .sort((a, b) => a - b)

/** uPlot, as its script leaves it. @returns {any} */
const library = () => /** @type {any} */ (globalThis).uPlot

export class Plot {
  /**
   * @param {string} title @param {(value: number) => string} print @param {boolean} [whole] whether only whole numbers
   * make sense on its scale
   */
  constructor(title, print, whole = false) {
    this.print = print
    this.whole = whole
    this.legend = h("div", { class: "legend" })
    this.title = h("span", {}, title)
    this.box = h("div", { class: "canvas", role: "img", "aria-label": title })
    this.element = h("figure", { class: "plot card" }, h("figcaption", {}, this.title, this.legend), this.box)
    /** @type {ReadonlyArray<Line>} */
    this.lines = []
    /** @type {any} */
    this.plot = undefined
    /** @type {ReadonlyArray<HTMLElement>} */
    this.values = []
    new ResizeObserver(() => this.resize()).observe(this.box)
  }

  /** @param {string} title */
  call(title) {
    say(this.title, title)
    this.box.setAttribute("aria-label", title)
  }

  /** @param {import("./samples.js").Samples} samples @param {ReadonlyArray<Line>} lines */
  show(samples, lines) {
    if (lines.length !== this.lines.length || lines.some(({ label }, i) => label !== this.lines[i]?.label))
      this.build(lines)
    const last = samples.list.at(-1)
    this.lines.forEach(({ read }, i) => {
      const value = last === undefined ? undefined : read(last)
      const text = value === null || value === undefined ? "–" : this.print(value)
      const element = this.values[i]
      if (element !== undefined && element.textContent !== text) element.textContent = text
    })
    this.plot?.setData([samples.list.map(({ at }) => at), ...this.lines.map(({ read }) => samples.values(read))], false)
    const end = last?.at ?? 0
    this.plot?.batch(() => {
      // The window grows with what is known, so that the first minute is not a sliver.
      this.plot.setScale("x", { min: end - Math.min(span, Math.max(60, end - (samples.list[0]?.at ?? end))), max: end })
      this.plot.setScale("y", { min: 0, max: this.top(samples) })
    })
  }

  /**
   * A little above the highest value, and never so low that noise looks like a mountain. @param
   * {import("./samples.js").Samples} samples
   */
  top(samples) {
    let most = 0
    for (const sample of samples.list) for (const { read } of this.lines) most = Math.max(most, read(sample) ?? 0)
    return most === 0 ? (this.whole ? 4 : 1) : most * 1.15
  }

  /** @param {ReadonlyArray<Line>} lines */
  build(lines) {
    this.lines = lines
    this.plot?.destroy()
    const values = lines.map(() => h("b", {}, "–"))
    this.values = values
    this.legend.replaceChildren(
      ...lines.map(({ colour: name, label }, i) => {
        const swatch = h("i", {})
        swatch.style.setProperty("background", `var(${name})`)
        return h("span", {}, swatch, label, " ", values[i])
      })
    )
    const make = library()
    if (make === undefined) return
    this.plot = new make(
      {
        width: Math.max(200, this.box.clientWidth),
        height: 132,
        padding: [8, 18, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        pxAlign: 1,
        scales: { x: { time: true, auto: false }, y: { auto: false } },
        axes: [
          axis({ size: 22, space: 70, values: clock }),
          axis({
            size: 54,
            space: 30,
            ...(this.whole ? { incrs: wholeSteps } : {}),
            values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((value) => this.print(value))
          })
        ],
        series: [
          {},
          ...lines.map(({ colour: name }, i) => ({
            stroke: () => colour(name),
            width: 1.5,
            points: { show: false },
            ...(lines.length === 1 && i === 0 ? { fill: () => `${colour(name)}22` } : {})
          }))
        ]
      },
      [[], ...lines.map(() => [])],
      this.box
    )
  }

  resize() {
    if (this.box.clientWidth > 0) this.plot?.setSize({ width: this.box.clientWidth, height: 132 })
  }

  redraw() {
    this.plot?.redraw()
  }
}

const width = 96
const height = 22

/** A line without axes; repainted by changing one attribute. */
export class Spark {
  constructor() {
    this.line = h("polyline", { points: "", fill: "none" })
    this.element = h(
      "svg",
      { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.line
    )
  }

  /** @param {ReadonlyArray<number | null>} values */
  show(values) {
    const shown = values.slice(-60).map((value) => value ?? 0)
    const most = Math.max(1, ...shown)
    this.line.setAttribute(
      "points",
      shown
        .map(
          (value, i) =>
            `${(((i + 60 - shown.length) / 59) * width).toFixed(1)},${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`
        )
        .join(" ")
    )
  }
}
