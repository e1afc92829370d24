/**
 * The views of the end-to-end test: every form of the first language slice over the real data, dozen and more.
 *
 * Why some have a second definition in plain TypeScript: the plain evaluator is the oracle of the engine, and these few
 * hold the evaluator itself against something that shares no code with it.
 */
import type { Json, JsonObject } from "./dataset.ts"

export interface LiveView {
  readonly id: string
  readonly surql: string
  readonly params?: JsonObject
  /** Rows are groups, not records: their keys and versions are the service's own. */
  readonly grouped?: true
  /** The filter by hand, on the record as it was sent. */
  readonly byHand?: (record: JsonObject) => boolean
}

/** Rank of a value's type in the database's total order, as far as JSON goes; date-times left out. */
const rank = (value: Json | undefined): number =>
  value === undefined
    ? 0
    : value === null
      ? 1
      : typeof value === "boolean"
        ? 2
        : typeof value === "number"
          ? 3
          : typeof value === "string"
            ? 4
            : 9

/** value > bound for a numeric bound, as the database compares across types. */
const above = (value: Json | undefined, bound: number, orEqual = false): boolean =>
  typeof value === "number" ? (orEqual ? value >= bound : value > bound) : rank(value) > 3

/** A path; through an array it gives the array of what each element has there, as the database does. */
const at = (value: Json | undefined, ...path: ReadonlyArray<string>): Json | undefined => {
  const [name, ...rest] = path
  if (name === undefined) return value
  if (Array.isArray(value)) return value.map((item: Json) => at(item, ...path) ?? null)
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? at((value as JsonObject)[name], ...rest)
    : undefined
}

export const liveViews: ReadonlyArray<LiveView> = [
  { id: "all-movies", surql: "SELECT * FROM movies", byHand: () => true },
  {
    id: "acclaimed",
    surql: "SELECT * FROM movies WHERE `IMDB Rating` > 8 AND `IMDB Votes` >= 10000",
    byHand: (r) => above(r["IMDB Rating"], 8) && above(r["IMDB Votes"], 10_000, true)
  },
  {
    id: "incantation:by-director",
    surql: "SELECT id, Title, Director AS by FROM movies WHERE Director = $who.name",
    params: { who: { name: "Steven Spielberg" } },
    byHand: (r) => r["Director"] === "Steven Spielberg"
  },
  {
    id: "unrated",
    surql:
      "SELECT id, Title FROM movies WHERE NOT (`MPAA Rating` IN ['R', 'PG-13', 'PG']) AND Distributor != NULL AND Distributor != NONE",
    byHand: (r) =>
      !["R", "PG-13", "PG"].includes(r["MPAA Rating"] as string) &&
      r["Distributor"] !== null &&
      r["Distributor"] !== undefined
  },
  {
    id: "words",
    surql: "SELECT * FROM movies WHERE Title CONTAINS 'the' OR Title CONTAINS $word.text",
    params: { word: { text: "È" } },
    byHand: (r) => holds(r["Title"], "the") || holds(r["Title"], "È")
  },
  {
    id: "missing",
    surql: "SELECT id FROM movies WHERE `Running Time min` = NONE",
    byHand: (r) => r["Running Time min"] === undefined
  },
  { id: "top-ten", surql: "SELECT id, Title, `US Gross` AS gross FROM movies ORDER BY gross DESC LIMIT 10" },
  { id: "a page", surql: "SELECT * FROM movies ORDER BY `Release Date`, Title DESC LIMIT 20 START 30" },
  {
    id: "a page of some",
    surql:
      "SELECT id, `Production Budget` AS budget, Source FROM movies WHERE Source = 'Remake' OR `Production Budget` < 5 ORDER BY budget DESC, Source LIMIT $n START $m",
    params: { n: 15, m: 3 }
  },
  { id: "no order but a limit", surql: "SELECT * FROM movies WHERE `Major Genre` = 'Western' LIMIT 25" },
  {
    id: "strong/quakes ?",
    surql: "SELECT * FROM earthquakes WHERE properties.mag >= $min.mag AND properties.status = 'reviewed'",
    params: { min: { mag: 4.5 } },
    byHand: (r) => above(at(r, "properties", "mag"), 4.5, true) && at(r, "properties", "status") === "reviewed"
  },
  {
    id: "quakes-now",
    surql:
      "SELECT id, properties.place AS place, properties.mag AS mag FROM earthquakes ORDER BY mag DESC, place LIMIT 25"
  },
  {
    id: "networks",
    surql:
      "SELECT id, properties.net AS net FROM earthquakes WHERE $nets CONTAINS properties.net AND properties.types CONTAINS 'shakemap'",
    params: { nets: ["us", "ak", "nc"] },
    byHand: (r) =>
      ["us", "ak", "nc"].includes(at(r, "properties", "net") as string) &&
      holds(at(r, "properties", "types"), "shakemap")
  },
  {
    id: "deep",
    surql:
      "SELECT id, geometry.coordinates AS c FROM earthquakes WHERE (properties.tsunami = 1 OR properties.felt > 5) AND !(properties.alert = 'green')",
    byHand: (r) =>
      (at(r, "properties", "tsunami") === 1 || above(at(r, "properties", "felt"), 5)) &&
      at(r, "properties", "alert") !== "green"
  },
  {
    id: "imports",
    surql: "SELECT id, Name, Origin FROM cars WHERE Origin != 'USA' AND (Cylinders = 4 OR Horsepower > 100)",
    byHand: (r) => r["Origin"] !== "USA" && (r["Cylinders"] === 4 || above(r["Horsepower"], 100))
  },
  { id: "null-power", surql: "SELECT * FROM cars WHERE Horsepower = NULL", byHand: (r) => r["Horsepower"] === null },
  {
    id: "thrifty",
    surql: "SELECT * FROM cars WHERE Year > '1975' ORDER BY Miles_per_Gallon DESC, Weight_in_lbs LIMIT 15 START 5"
  },
  {
    id: "per origin",
    surql: "SELECT Origin, count() AS n, count(Horsepower > 100) AS strong FROM cars GROUP BY Origin",
    grouped: true
  },
  {
    id: "per size",
    surql:
      "SELECT Cylinders AS size, count() AS n FROM cars WHERE Horsepower > 90 GROUP BY size ORDER BY n DESC LIMIT 3",
    grouped: true
  },
  {
    id: "rivals",
    surql:
      "SELECT id, (SELECT VALUE id FROM cars WHERE Origin = $parent.Origin AND Horsepower > $parent.Horsepower LIMIT 3) AS rivals FROM cars WHERE Horsepower > 215"
  },
  {
    id: "one-car",
    surql: "SELECT Name, Acceleration FROM cars WHERE id = $id",
    params: { id: "cars:`ford pinto #38`" }
  }
]

/** CONTAINS where the left side may be anything. */
function holds(value: Json | undefined, part: string): boolean {
  return typeof value === "string" ? value.includes(part) : Array.isArray(value) && value.includes(part)
}
