/**
 * Figures as people read them: short, aligned, with their unit.
 *
 * Pure, so that the same figure looks the same everywhere.
 */
// @ts-check

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 })

/** @param {number} n */
export const count = (n) => (Math.abs(n) < 100_000 ? whole.format(n) : short.format(n))

/** @param {number | undefined} n */
export const rate = (n) => (n === undefined ? "–" : n === 0 ? "0" : n < 10 ? n.toFixed(1) : count(n))

/** @param {number | null | undefined} ms */
export const millis = (ms) =>
  ms === undefined || ms === null
    ? "–"
    : ms === 0
      ? "0 ms"
      : ms < 1
        ? `${ms.toFixed(2)} ms`
        : ms < 10
          ? `${ms.toFixed(1)} ms`
          : ms < 1000
            ? `${Math.round(ms)} ms`
            : `${(ms / 1000).toFixed(1)} s`

/** Two units at most. @param {number} seconds */
export const duration = (seconds) => {
  const s = Math.max(0, Math.floor(seconds))
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`
}

/** A time to live, as a registration writes it. @param {number} seconds */
export const ttl = (seconds) => {
  for (const [unit, size] of /** @type {const} */ ([
    ["w", 604_800],
    ["d", 86_400],
    ["h", 3600],
    ["m", 60]
  ]))
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`
  return `${seconds}s`
}

/** @param {number | null} mb */
export const megabytes = (mb) =>
  mb === null ? "–" : mb < 1000 ? `${Math.round(mb)} MB` : `${(mb / 1000).toFixed(1)} GB`

/** @param {number} bytes */
export const memory = (bytes) => (bytes < 1e6 ? `${count(Math.ceil(bytes / 1e3))} KB` : megabytes(bytes / 1e6))

/** @param {number | null | undefined} p */
export const percent = (p) => (p === null || p === undefined ? "–" : `${p < 10 ? p.toFixed(1) : Math.round(p)} %`)

/** How long ago an ISO time was, by this browser's clock. @param {string} iso */
export const ago = (iso) => {
  const s = (Date.now() - Date.parse(iso)) / 1000
  return Number.isNaN(s) ? "–" : s < 2 ? "now" : `${duration(s)} ago`
}

// Controls, marks that turn the direction of text, spaces of no width (but joiners, which emoji and scripts need),
// separators of lines.
const unseen =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

/**
 * Text whose invisible characters show, so that no id looks like another and none turns round what stands beside it.
 * Line ends and tabs stay. @param {string} text
 */
export const visible = (text) =>
  text.replace(
    unseen,
    (character) => `\u27e8U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`
  )

/** Any value in one line, cut. @param {unknown} value @param {number} [most] */
export const brief = (value, most = 80) => {
  const text = typeof value === "string" ? value : value === undefined ? "" : (JSON.stringify(value) ?? "")
  const line = text.replace(/\r?\n/g, "\u240a").replaceAll("\t", "\u2409")
  return line.length > most ? `${line.slice(0, most)}…` : line
}

/**
 * The latency below which `share` of the answers lie, from counts in buckets; undefined where there were none.
 * @param {ReadonlyArray<number>} bounds @param {ReadonlyArray<number>} counts @param {number} share
 */
export const quantile = (bounds, counts, share) => {
  const total = counts.reduce((sum, n) => sum + n, 0)
  if (total === 0) return undefined
  let left = total * share
  for (const [i, n] of counts.entries()) {
    if (n >= left && n > 0) {
      const low = i === 0 ? 0 : (bounds[i - 1] ?? 0)
      const high = bounds[i] ?? low * 1.5
      return low + (high - low) * (left / n)
    }
    left -= n
  }
  return bounds[bounds.length - 1]
}
