/**
 * Real data, made a little messier: the movies, earthquakes and cars of vega-datasets, and seeded changes to them.
 *
 * Why these: they have what generated data never has: titles that are numbers, nulls in every column, keys with spaces,
 * broken encodings, nested objects. On top of it some fields are dropped and some change their type.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../rules/source.ts"
import type { Rng } from "./random.ts"

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject
export type JsonObject = { readonly [key: string]: Json }

/** A record as it is sent: the id in the form a feed would write it, unescaped, and the content without it. */
export interface Sample {
  readonly table: string
  readonly id: string
  readonly record: JsonObject
}

const load = (name: string): unknown =>
  JSON.parse(readFileSync(join(root, `node_modules/vega-datasets/data/${name}.json`), "utf8"))

/** Every record once: movies by number, earthquakes by code, cars by their name with its blanks, quotes and slashes. */
export const samples = (): ReadonlyArray<Sample> => {
  const movies = load("movies") as ReadonlyArray<JsonObject>
  const quakes = (load("earthquakes") as { features: ReadonlyArray<JsonObject & { id: string }> }).features
  const cars = load("cars") as ReadonlyArray<JsonObject & { Name: string }>
  return [
    ...movies.map((record, index) => ({ table: "movies", id: `movies:${index}`, record })),
    ...quakes.map(({ id, ...record }) => ({ table: "earthquakes", id: `earthquakes:${id}`, record })),
    ...cars.map((record, index) => ({ table: "cars", id: `cars:${record.Name} #${index}`, record }))
  ]
}

/**
 * Drops the nulls of every third record, so that fields are missing and not only null, and turns some values into
 * others.
 */
export const messy = (random: Rng, all: ReadonlyArray<Sample>): ReadonlyArray<Sample> =>
  all.map((sample, index) => {
    let record = sample.record
    if (index % 3 === 0) record = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
    if (random.chance(0.03)) record = mutate(random, record, record)
    return { ...sample, record }
  })

const oddValues: ReadonlyArray<Json> = [
  null,
  true,
  false,
  0,
  -1,
  8.5,
  1e21,
  "",
  "n/a",
  "12",
  " padded ",
  "the 'odd' one \\ ⟨x⟩",
  "ÈÍ\u0000\u2028",
  "2024-05-01T12:00:00Z",
  "2024-05-01",
  "movies:1",
  [],
  [1, "a", null],
  ["R", "PG-13"],
  {},
  { mag: 5 },
  { text: "the" }
]

/** Changes one to three fields: to another record's value, to something odd, or away. */
export const mutate = (random: Rng, record: JsonObject, other: JsonObject): JsonObject => {
  const changed: Record<string, Json> = { ...record }
  const keys = Object.keys({ ...other, ...record })
  for (let n = 1 + random.below(3); n > 0 && keys.length > 0; n--) {
    const key = random.pick(keys)
    const kind = random.next()
    const value = changed[key]
    if (isObject(value) && random.chance(0.8))
      changed[key] = mutate(random, value, isObject(other[key]) ? other[key] : value)
    else if (kind < 0.55 && other[key] !== undefined) changed[key] = other[key]
    else if (kind < 0.65) delete changed[key]
    else if (kind < 0.8) changed[key] = random.below(1000) / 10
    else changed[key] = random.pick(oddValues)
  }
  return changed
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
