/**
 * What the local cluster holds: 3,201 real films and a week of real earthquakes from vega-datasets, the views over
 * them, and an endless run of changes: votes on films, earthquakes that arrive, and an alert to be sent for each that
 * is felt.
 *
 * Real data, because invented data shows nothing that a reader could check.
 */
import { readFileSync } from "node:fs"
import { root } from "./child.ts"

export interface Change {
  readonly table: string
  readonly op: "CREATE" | "UPDATE" | "DELETE"
  readonly id: string
  readonly record: { readonly [field: string]: unknown }
}

interface Film {
  readonly title: string
  readonly genre: string
  readonly rating: number
  readonly votes: number
}

interface Quake {
  readonly code: string
  readonly place: string
  readonly mag: number
}

type Raw = { readonly [field: string]: unknown }

/** Without what is null: a field that is not there says the same. */
const filled = (record: Raw): Raw =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined))

const load = (name: string): unknown =>
  JSON.parse(readFileSync(`${root}/node_modules/vega-datasets/data/${name}.json`, "utf8"))

const films = (): ReadonlyArray<Film> =>
  (load("movies") as ReadonlyArray<Raw>).map((raw) => ({
    ...filled({
      year: Number(String(raw["Release Date"]).slice(-4)) || undefined,
      director: raw["Director"],
      distributor: raw["Distributor"],
      budget: raw["Production Budget"],
      gross: raw["Worldwide Gross"]
    }),
    title: String(raw["Title"]),
    genre: String(raw["Major Genre"] ?? "unknown"),
    rating: Number(raw["IMDB Rating"] ?? 0),
    votes: Number(raw["IMDB Votes"] ?? 0)
  }))

const quakes = (): ReadonlyArray<Quake> =>
  (
    load("earthquakes") as {
      readonly features: ReadonlyArray<{
        readonly id: string
        readonly properties: Raw
        readonly geometry: { readonly coordinates: ReadonlyArray<number> }
      }>
    }
  ).features
    .slice()
    .sort((a, b) => Number(a.properties["time"]) - Number(b.properties["time"]))
    .map(({ geometry, id, properties }) => ({
      ...filled({
        network: properties["net"],
        felt: properties["felt"],
        depth: geometry.coordinates[2],
        significance: properties["sig"]
      }),
      code: id,
      place: String(properties["place"]),
      mag: Number(properties["mag"] ?? 0)
    }))

export interface View {
  readonly id: string
  readonly surql: string
  readonly params?: { readonly [name: string]: unknown }
}

/** A few of each kind: filter, order and limit, groups, a query inside a query, jobs. */
export const views: ReadonlyArray<View> = [
  {
    id: "demo:best-films",
    surql: "SELECT id, title, rating, votes FROM film WHERE votes > 50000 ORDER BY rating DESC, votes DESC LIMIT 10"
  },
  {
    id: "demo:genres",
    surql:
      "SELECT genre, count() AS films, math::sum(votes) AS votes, math::mean(rating) AS rating FROM film WHERE rating > 0 GROUP BY genre"
  },
  {
    id: "demo:favourites-by-genre",
    surql:
      "SELECT id, name, (SELECT title, votes FROM film WHERE genre = $parent.name ORDER BY votes DESC LIMIT 3) AS favourites FROM genre ORDER BY name"
  },
  { id: "demo:newest-quakes", surql: "SELECT id, at, place, mag FROM quake ORDER BY at DESC LIMIT 15" },
  {
    id: "demo:strong-quakes",
    surql: "SELECT id, at, place, mag, depth FROM quake WHERE mag >= $least ORDER BY mag DESC LIMIT 20",
    params: { least: 4.5 }
  },
  {
    id: "demo:quakes-by-network",
    surql: "SELECT network, count() AS quakes, math::max(mag) AS strongest FROM quake GROUP BY network"
  },
  { id: "demo:alerts-by-status", surql: "SELECT status, count() AS alerts FROM alert GROUP BY status" },
  {
    id: "demo:alerts-open",
    surql:
      "SELECT id, status, array::len(errors) AS failed_calls, payload FROM alert WHERE status != 'success' ORDER BY id DESC LIMIT 20"
  }
]

/** Earthquakes there at the start and kept later on; alerts kept. */
const keptQuakes = 1000
const keptAlerts = 200
/** From this magnitude on an alert is sent. */
const alertFrom = 2.5

/** The state that changes are made from. */
export class World {
  readonly #films = films().map((film) => ({ ...film }))
  /** Films by number, those with most votes first. */
  readonly #popular = this.#films.map((_, n) => n).sort((a, b) => this.#films[b]!.votes - this.#films[a]!.votes)
  readonly #quakes = quakes()
  /** The strongest of those at the beginning, whose alerts come first, so that jobs are seen at once. */
  readonly #lateAlerts = Array.from({ length: keptQuakes }, (_, n) => n)
    .sort((a, b) => this.#quakes[a]!.mag - this.#quakes[b]!.mag)
    .slice(-12)
  readonly #now: () => Date
  readonly #random: () => number
  #arrived = keptQuakes
  #alerts = 0

  constructor(now: () => Date, random: () => number) {
    this.#now = now
    this.#random = random
  }

  /** All that is there at the beginning. */
  filling(): ReadonlyArray<Change> {
    const genres = [...new Set(this.#films.map(({ genre }) => genre))].sort()
    const begun = this.#now().getTime()
    return [
      ...genres.map(
        (name): Change => ({
          table: "genre",
          op: "CREATE",
          id: `genre:${name.toLowerCase().replace(/[^a-z]+/g, "_")}`,
          record: { name }
        })
      ),
      ...this.#films.map((record, n): Change => ({ table: "film", op: "CREATE", id: `film:${n}`, record })),
      ...Array.from({ length: keptQuakes }, (_, n) => this.#quake(n, new Date(begun - (keptQuakes - n) * 1000)))
    ]
  }

  /** What happens next: mostly a vote, now and then an earthquake with what follows from it. */
  next(): ReadonlyArray<Change> {
    const late = this.#random() < 0.2 ? this.#lateAlerts.pop() : undefined
    if (late !== undefined) return this.#alert(this.#quake(late, this.#now()))
    return this.#random() < 0.9 ? [this.#vote()] : this.#arrival()
  }

  #quake(n: number, at: Date): Change {
    const { code, ...quake } = this.#quakes[n % this.#quakes.length]!
    return {
      table: "quake",
      op: "CREATE",
      id: `quake:${code}_${Math.floor(n / this.#quakes.length)}`,
      record: { ...quake, at: at.toISOString() }
    }
  }

  /** Well-known films get most of the votes; a vote is a whole number from 1 to 10 near what others gave. */
  #vote(): Change {
    const n = this.#popular[Math.floor(this.#random() ** 3 * this.#popular.length)]!
    const film = this.#films[n]!
    const given = Math.min(10, Math.max(1, Math.round((film.rating || 5) + (this.#random() - 0.5) * 6)))
    const votes = film.votes + 1 + Math.floor(this.#random() * 200)
    const rating = Math.round(((film.rating * film.votes + given * (votes - film.votes)) / votes) * 1000) / 1000
    const record = (this.#films[n] = { ...film, votes, rating })
    return { table: "film", op: "UPDATE", id: `film:${n}`, record }
  }

  #arrival(): ReadonlyArray<Change> {
    const n = this.#arrived++
    const change = this.#quake(n, this.#now())
    const gone = this.#quake(n - keptQuakes, this.#now())
    return [
      change,
      { table: "quake", op: "DELETE", id: gone.id, record: {} },
      ...(this.#quakes[n % this.#quakes.length]!.mag >= alertFrom ? this.#alert(change) : [])
    ]
  }

  /** A job: the record asks for a call to the backend, and says later what came of it. */
  #alert(of: Change): ReadonlyArray<Change> {
    const n = this.#alerts++
    const id = (number: number): string => `alert:${String(number).padStart(6, "0")}`
    const record = {
      path: "/alert",
      payload: { quake: of.id, place: of.record["place"], mag: of.record["mag"] },
      status: "pending",
      retries: 0,
      max_retries: 3,
      retry_strategy: "exponential",
      errors: [],
      created_at: this.#now().toISOString()
    }
    return [
      { table: "alert", op: "CREATE", id: id(n), record },
      ...(n >= keptAlerts ? [{ table: "alert", op: "DELETE", id: id(n - keptAlerts), record: {} } as const] : [])
    ]
  }
}
