/**
 * Random records and random live queries for the engine's law tests.
 *
 * Values are few and collide often, types are mixed everywhere, and links dangle, because that is where engines differ
 * from the plain evaluator. A swarm mask per run switches features off, so that rare combinations still occur alone.
 */
import type { Rng } from "../../kit/random.ts"

export interface Swarm {
  readonly links: boolean
  readonly mixedTypes: boolean
  readonly windows: boolean
  readonly failing: boolean
  readonly nested: boolean
  readonly graph: boolean
  /** Queries that are run again rather than maintained. */
  readonly rerun: boolean
}

export const swarm = (rng: Rng): Swarm => ({
  links: rng.chance(0.6), mixedTypes: rng.chance(0.7), windows: rng.chance(0.7), failing: rng.chance(0.4), nested: rng.chance(0.6), graph: rng.chance(0.4), rerun: rng.chance(0.4)
})

const numbers: ReadonlyArray<unknown> = [0, 1, 2, 3, -1, 1.5, 2.5]
const strings: ReadonlyArray<unknown> = ["", "a", "b", "ab", "Z", "é", "10", "9"]
const odd: ReadonlyArray<unknown> = [null, true, false, [], [1], [1, "a"], {}, { x: 1 }, "2020-01-02T03:04:05Z"]

export const tables: ReadonlyArray<string> = ["person", "post"]
export const keys: ReadonlyArray<string> = ["1", "2", "3", "10", "a", "b", "Z", "⟨x y⟩", "⟨9⟩", "é"].map((key) => key.replace("é", "⟨é⟩"))

const scalar = (rng: Rng, mask: Swarm): unknown => {
  if (mask.mixedTypes && rng.chance(0.3)) return rng.pick(odd)
  return rng.chance(0.6) ? rng.pick(numbers) : rng.pick(strings)
}

/** A record body as JSON; every field may be missing. */
export const body = (rng: Rng, mask: Swarm): { readonly [key: string]: unknown } => {
  const record: Record<string, unknown> = {}
  if (rng.chance(0.85)) record["n"] = scalar(rng, mask)
  if (rng.chance(0.85)) record["s"] = rng.chance(0.8) ? rng.pick(strings) : scalar(rng, mask)
  if (rng.chance(0.5)) record["flag"] = rng.chance(0.9) ? rng.chance(0.5) : scalar(rng, mask)
  if (rng.chance(0.5)) record["tags"] = Array.from({ length: rng.below(4) }, () => scalar(rng, mask))
  if (mask.nested && rng.chance(0.6)) record["sub"] = rng.chance(0.8) ? { x: scalar(rng, mask), y: { z: scalar(rng, mask) } } : scalar(rng, mask)
  if (mask.links && rng.chance(0.7)) record["friend"] = rng.chance(0.9) ? `${rng.pick(tables)}:${rng.pick(keys)}` : scalar(rng, mask)
  return record
}

/** An edge record; now and then one end is missing or no record. */
export const edge = (rng: Rng): { readonly [key: string]: unknown } => ({
  in: rng.chance(0.95) ? `person:${rng.pick(keys)}` : rng.pick(odd), out: rng.chance(0.95) ? `post:${rng.pick(keys)}` : rng.pick(odd), w: rng.below(4)
})

const literal = (rng: Rng): string => rng.pick(["0", "1", "2", "1.5", "-1", "'a'", "'b'", "'ab'", "''", "'10'", "true", "false", "NULL", "NONE", "[1]", "[1, 'a']", "person:1", "$p", "$o.x"])

const path = (rng: Rng, mask: Swarm): string => {
  const choices = ["n", "s", "flag", "tags", "id", "missing"]
  if (mask.nested) choices.push("sub.x", "sub.y.z", "sub")
  if (mask.links) choices.push("friend", "friend.n", "friend.s", "friend.friend.n")
  return rng.pick(choices)
}

const condition = (rng: Rng, mask: Swarm, depth: number): string => {
  if (depth > 0 && rng.chance(0.45)) {
    const joined = `${condition(rng, mask, depth - 1)} ${rng.pick(["AND", "OR", "&&", "||"])} ${condition(rng, mask, depth - 1)}`
    return rng.chance(0.3) ? `!(${joined})` : `(${joined})`
  }
  if (mask.graph && rng.chance(0.2)) return rng.pick(["->likes->post CONTAINS post:1", "count(->likes) > 1", "<-likes", "->likes->post.n CONTAINS 1", "->(likes WHERE w > 1)->post", "<-likes<-person.s CONTAINS 'a'"])
  if (mask.failing && rng.chance(0.2)) return `${path(rng, mask)} ${rng.pick(["+", "-", "*"])} 1 > ${literal(rng)}`
  if (rng.chance(0.15)) return `${path(rng, mask)} IN [${literal(rng)}, ${literal(rng)}, ${literal(rng)}]`
  if (rng.chance(0.15)) return `tags ${rng.pick(["CONTAINS", "CONTAINSNOT"])} ${literal(rng)}`
  if (rng.chance(0.1)) return path(rng, mask)
  if (mask.links && rng.chance(0.15)) return `friend.${rng.pick(["n", "s", "friend.n"])} = ${literal(rng)}`
  const op = rng.chance(0.5) ? "=" : rng.pick(["!=", "<", "<=", ">", ">="])
  return rng.chance(0.2) ? `${literal(rng)} ${op} ${path(rng, mask)}` : `${path(rng, mask)} ${op} ${literal(rng)}`
}

const rerunQuery = (rng: Rng, mask: Swarm): string => {
  const table = rng.pick(tables)
  const where = rng.chance(0.5) ? ` WHERE ${condition(rng, mask, 1)}` : ""
  return rng.pick([
    `SELECT s, count() AS c FROM ${table}${where} GROUP BY s`,
    `SELECT count() AS c, array::group(n) AS ns FROM ${table}${where} GROUP ALL`,
    `SELECT flag, s, count() AS c FROM ${table}${where} GROUP BY flag, s ORDER BY c DESC LIMIT 3`,
    `SELECT VALUE s FROM ${table}${where} GROUP BY s`,
    `SELECT * FROM ${table}${where} SPLIT tags`,
    `SELECT * FROM ONLY ${table}:1`,
    `SELECT * FROM ${table}:1..b`,
    `SELECT id, n FROM person, post${where} LIMIT 7`,
    `SELECT *, (SELECT VALUE n FROM post WHERE s = $parent.s) AS theirs FROM person${where}`,
    `SELECT * FROM ${table} WHERE s IN (SELECT VALUE s FROM ${rng.pick(tables)} WHERE n > 1)`,
    `SELECT id, friend FROM ${table}${where} FETCH friend`,
    `SELECT * FROM [${table}:1, ${table}:2, person:a]`
  ])
}

/** A live query over one table, in the language the engine maintains. */
export const query = (rng: Rng, mask: Swarm): string => {
  if (mask.rerun && rng.chance(0.3)) return rerunQuery(rng, mask)
  const ordered = rng.chance(0.6)
  const order = ordered ? rng.pick(["n", "s", "n DESC", "s DESC", "n, s DESC", "flag, n", ...(mask.links ? ["friend.n", "friend.n DESC, s"] : [])]) : ""
  const projection = ordered || rng.chance(0.5) ? "*" : rng.pick(["n, s", "id, n AS number", "id, sub.x, s", "VALUE n", "*, s AS shown"])
  const fails = mask.failing && rng.chance(0.3) ? ", n + 1 AS next" : ""
  const links = mask.links && rng.chance(0.3) ? ", friend.s AS theirs, friend.friend.n AS far" : ""
  const shown = projection.startsWith("VALUE") ? projection : `${projection}${fails}${links}`
  const graph = mask.graph && rng.chance(0.4) && !shown.startsWith("VALUE") ? rng.pick([", ->likes->post AS liked", ", <-likes<-person.n AS fans", ", ->likes.w AS weights", ", ->?->? AS all"]) : ""
  const where = rng.chance(0.85) ? ` WHERE ${condition(rng, mask, 2)}` : ""
  const limit = mask.windows && rng.chance(0.6) ? ` LIMIT ${rng.below(7)}` : ""
  const start = mask.windows && rng.chance(0.3) ? ` START ${rng.below(5)}` : ""
  return `SELECT ${shown}${graph} FROM ${rng.pick(tables)}${where}${order === "" ? "" : ` ORDER BY ${order}`}${limit}${start}`
}

export const params = (rng: Rng): { readonly [name: string]: unknown } => ({ p: rng.pick([...numbers, ...strings]), o: { x: rng.pick([...numbers, ...strings]) } })
