/**
 * The workloads W8 to W10: many pages of one long list, by rank, from a score on, and of sets of channels.
 */
import { firstWhere } from "../../../src/core/bisect.ts"
import { Dice, Drawn, type Sizes } from "./history.ts"
import type { Asked, Change, Row, Workload } from "./program.ts"

const channels = 200
const topScore = 1_000_000

/** A story of a long list; four fifths are published. */
const story = (dice: Dice, at: number): Omit<Row, "id"> => ({
  channel: dice.below(channels),
  score: dice.below(topScore),
  published: dice.below(5) > 0,
  title: `Story number ${dice.below(1_000_000)}`,
  at
})

/**
 * Pages of one long list: seven changes in ten shift nothing (titles, rows that are not published, rows behind every
 * page), two move a row by chance, one comes to the very front or leaves it, which shifts every page of a list by rank.
 */
const pages = (
  name: "W8" | "W9" | "W10",
  views: number,
  { rows: count, history }: Sizes,
  page: (stories: ReadonlyArray<Row>, asked: Asked) => ReadonlyArray<Row>,
  order: (a: Row, b: Row) => number
): Workload => {
  const dice = new Dice(8)
  const rows = Array.from({ length: count }, (_, id) => ({ id, ...story(dice, 1_000_000 + id) }) as Row)
  const asked: ReadonlyArray<Asked> = Array.from({ length: views }, (_, view) => ({
    start: 50 * view,
    cursor: Math.round(topScore * (1 - (view + 1) / (views + 1))),
    channels: Array.from({ length: 20 }, (_, n) => (n * 10 + dice.below(10)) % channels)
  }))
  const changes: Array<Change> = []
  const table = new Drawn("story", rows, changes)
  const front: Array<Row> = []
  const shifted: Array<number | "any"> = []
  /** Pages that a row at the very front shifts. */
  const pagesOf = ({ channel }: Row): number | "any" => {
    if (name === "W8") return views
    return name === "W9" ? "any" : asked.filter(({ channels }) => channels.includes(channel as number)).length
  }
  for (let n = 0; n < history; n++) {
    const kind = n % 10
    if (kind < 4) table.update(table.any(dice), { title: `Edited ${n}` })
    else if (kind < 6) table.insert({ ...story(dice, -n), published: false })
    else if (kind === 6) table.insert({ ...story(dice, -n), score: -1 - n })
    else if (kind < 9) table.update(table.any(dice), { score: dice.below(topScore) })
    else {
      const removes = front.length > 0 && n % 20 < 10
      const row = removes
        ? front.pop()!
        : table.insert({ ...story(dice, 5_000_000 + n), published: true, score: topScore + n })
      if (removes) table.remove(row)
      else front.push(row)
      shifted[n] = pagesOf(row)
    }
  }
  return {
    name,
    size: views,
    tables: { story: { refs: {}, sample: rows[0]! } },
    rows: { story: rows },
    views,
    asks: (view) => asked[view]!,
    changes,
    shifts: (change) => (change % 10 < 7 ? 0 : (shifted[change] ?? "any")),
    ordered: true,
    answer: (tables) => {
      const sorted = [...tables["story"]!.values()].sort(order)
      return (view) => page(sorted, asked[view]!)
    }
  }
}

const bestFirst = (a: Row, b: Row): number => (b["score"] as number) - (a["score"] as number) || a.id - b.id
const latestFirst = (a: Row, b: Row): number => (b["at"] as number) - (a["at"] as number) || a.id - b.id

/** The published stories of a list, found once for all pages of it. */
const publishedOf = (): ((stories: ReadonlyArray<Row>) => ReadonlyArray<Row>) => {
  let from: ReadonlyArray<Row> | undefined,
    found: ReadonlyArray<Row> = []
  return (stories) => {
    if (from !== stories) found = (from = stories).filter((row) => row["published"] === true)
    return found
  }
}

/** More and more pages of one list, one behind the other. */
export const w8 = (views: number, sizes: Sizes): Workload => {
  const published = publishedOf()
  return pages("W8", views, sizes, (stories, { start }) => published(stories).slice(start, start + 50), bestFirst)
}

/** More and more pages that each begin below a score. */
export const w9 = (views: number, sizes: Sizes): Workload => {
  const published = publishedOf()
  const page = (stories: ReadonlyArray<Row>, { cursor }: Asked): ReadonlyArray<Row> => {
    const rows = published(stories)
    const start = firstWhere(rows.length, (at) => (rows[at]!["score"] as number) < cursor)
    return rows.slice(start, start + 50)
  }
  return pages("W9", views, sizes, page, bestFirst)
}

/** The latest 50 of more and more sets of 20 channels. */
export const w10 = (views: number, sizes: Sizes): Workload =>
  pages(
    "W10",
    views,
    sizes,
    (stories, asked) => firstOf(stories, 50, (row) => asked.channels.includes(row["channel"] as number)),
    latestFirst
  )

const firstOf = (rows: ReadonlyArray<Row>, count: number, isOne: (row: Row) => boolean): ReadonlyArray<Row> => {
  const found: Array<Row> = []
  for (const row of rows) {
    if (found.length === count) break
    if (isOne(row)) found.push(row)
  }
  return found
}
