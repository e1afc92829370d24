/**
 * Progress of long work as text: the line of a log, the bar of a terminal, the entry of `/progress` (D34).
 *
 * Pure, so that all of them agree. The rate is the mean over the whole work, which is steady; the remaining time is
 * estimated from it.
 */
import type { TaskKind } from "./metrics.ts"

export interface Task {
  readonly kind: TaskKind
  /** Object of the task: `the database`, `table cars`, an SSP's id. */
  readonly what: string
  /** Unit that `done` counts: `records`, `events`. */
  readonly unit: string
  /** Part being worked on, such as a table. */
  readonly at: string | undefined
  readonly done: number
  /** Total number of units; undefined if it is unknown before the end. */
  readonly total: number | undefined
  readonly elapsedMs: number
}

interface Pace {
  readonly perSecond: number
  /** Estimated milliseconds to the end; undefined if the total is unknown, or nothing is done yet. */
  readonly remainingMs: number | undefined
}

export const paceOf = ({ done, elapsedMs, total }: Task): Pace => {
  const perSecond = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0
  return {
    perSecond,
    remainingMs: total === undefined || perSecond === 0 ? undefined : (Math.max(0, total - done) * 1000) / perSecond
  }
}

const grouped = (count: number): string => String(Math.round(count)).replace(/\B(?=(?:\d{3})+$)/g, ",")

/** `3 s`, `2 min 5 s`, `1 h 4 min`. */
export const timeText = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

const part = ({ done, total }: Task): number | undefined =>
  total === undefined || total <= 0 ? undefined : Math.min(1, done / total)

const amount = (task: Task): string => {
  const known = part(task)
  return known === undefined
    ? `${grouped(task.done)} ${task.unit}`
    : `${grouped(task.done)} of ${grouped(task.total ?? 0)} ${task.unit}, ${Math.floor(known * 100)} %`
}

const nameOf = ({ at, kind, what }: Task): string => `${kind} of ${what}${at === undefined ? "" : ` (${at})`}`

/** One line for a log. */
export const line = (task: Task): string => {
  const { perSecond, remainingMs } = paceOf(task)
  const left = remainingMs === undefined ? "" : `, about ${timeText(remainingMs)} left`
  return `${nameOf(task)}: ${amount(task)} in ${timeText(task.elapsedMs)}, ${grouped(perSecond)} ${task.unit}/s${left}`
}

const barWidth = 24
/** Length of the moving piece of a bar whose total is unknown. */
const pieceWidth = 4

/** One line for a terminal of this width. */
export const bar = (task: Task, columns: number): string => {
  const known = part(task)
  const filled = known === undefined ? pieceWidth : Math.floor(known * barWidth)
  const before = known === undefined ? Math.floor(task.elapsedMs / 200) % (barWidth - pieceWidth + 1) : 0
  const drawn = `${"-".repeat(before)}${"#".repeat(filled)}`.padEnd(barWidth, "-")
  return `[${drawn}] ${line(task)}`.slice(0, Math.max(0, columns - 1))
}
