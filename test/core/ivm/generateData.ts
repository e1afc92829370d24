/**
 * Random records and histories of changes for the engine's law tests.
 *
 * Why so: values are few and collide often, types are mixed everywhere, links dangle and rows come back, because that
 * is where engines differ from a fresh run. A history has four phases (build up, tear down, edit, edit back). A swarm
 * mask per run switches features off, so that rare combinations also occur alone.
 */
import type { Rng } from "../../../kit/data/random.ts"
import type { Step } from "./runCase.ts"

export const features = [
  "links",
  "graph",
  "mixed",
  "windows",
  "failing",
  "nested",
  "group",
  "split",
  "fetch",
  "subquery",
  "uncorrelated",
  "sources",
  "only",
  "value",
  "omit",
  "params",
  "order",
  "records",
  "numbers",
  "batch",
  "versions",
  "functions",
  "restart",
  "late",
  "twins",
  "shadow"
] as const

export type Feature = (typeof features)[number]

export type Mask = ReadonlySet<Feature>

/** Each feature is off in a third of the runs. */
export const swarm = (rng: Rng): Mask => new Set(features.filter(() => rng.chance(0.67)))

export type Json = { readonly [key: string]: unknown }

export const tables: ReadonlyArray<string> = ["person", "post", "comment"]
export const edgeTables: ReadonlyArray<string> = ["likes", "knows"]
export const keys: ReadonlyArray<string> = ["1", "2", "10", "a", "Z", "`x y`", "`9`", "[1, 'a']"]

/** Keys of records that nothing links to: to the database the ids of some are equal. */
const twins: ReadonlyArray<string> = ["[2]", "[2f]", "[2dec]", "{ a: 1 }", "{ a: 1f }"]

const small: ReadonlyArray<unknown> = [0, 1, 2, 3, -1, 10]
/** Neighbours that a float cannot tell apart, and the ends. */
const large: ReadonlyArray<unknown> = [
  9007199254740992n,
  9007199254740993n,
  -9007199254740993n,
  9223372036854775806n,
  9223372036854775807n,
  -9223372036854775808n
]
const integers: ReadonlyArray<unknown> = [...small, ...small, ...small, ...large]
const floats: ReadonlyArray<unknown> = [1.5, 2.5, 0.1, 0.2, 0.3, 1e15, -0.7]
const strings: ReadonlyArray<unknown> = [
  "",
  "a",
  "b",
  "ab",
  "Z",
  "é",
  "10",
  "9",
  "a10",
  "a9",
  "A",
  "李",
  "li",
  "Ж",
  "½"
]
const odd: ReadonlyArray<unknown> = [
  null,
  true,
  false,
  [],
  [1],
  [1, "a"],
  {},
  { x: 1 },
  "2020-01-02T03:04:05Z",
  "2021-06-01T12:30:00.5Z"
]

export const scalar = (rng: Rng, mask: Mask): unknown => {
  if (mask.has("mixed") && rng.chance(0.3)) return rng.pick(odd)
  return rng.chance(0.55)
    ? rng.pick(integers)
    : mask.has("mixed") && rng.chance(0.6)
      ? rng.pick(strings)
      : rng.pick(floats)
}

export const recordText = (rng: Rng): string => `${rng.chance(0.7) ? "person" : rng.pick(tables)}:${rng.pick(keys)}`

const makers: { readonly [field: string]: (rng: Rng, mask: Mask) => unknown } = {
  n: scalar,
  m: scalar,
  s: (rng, mask) => (mask.has("mixed") && rng.chance(0.15) ? scalar(rng, mask) : rng.pick(strings)),
  g: (rng, mask) => (mask.has("mixed") ? rng.pick([1, 1, 2, "a", null, "1", 1.5, true, [1]]) : rng.below(3)),
  flag: (rng, mask) => (mask.has("mixed") && rng.chance(0.1) ? scalar(rng, mask) : rng.chance(0.5)),
  tags: (rng, mask) =>
    mask.has("mixed") && rng.chance(0.1)
      ? scalar(rng, mask)
      : Array.from({ length: rng.below(4) }, () => scalar(rng, mask)),
  sub: (rng, mask) =>
    mask.has("mixed") && rng.chance(0.2) ? scalar(rng, mask) : { x: scalar(rng, mask), y: { z: scalar(rng, mask) } },
  friend: (rng, mask) => (mask.has("mixed") && rng.chance(0.08) ? scalar(rng, mask) : recordText(rng)),
  author: (rng) => `person:${rng.pick(keys)}`,
  links: (rng) => Array.from({ length: rng.below(4) }, () => recordText(rng))
}

const fieldsOf = (mask: Mask): ReadonlyArray<string> =>
  Object.keys(makers).filter((name) =>
    name === "sub"
      ? mask.has("nested")
      : name === "friend" || name === "author" || name === "links"
        ? mask.has("links") || mask.has("subquery") || mask.has("fetch")
        : true
  )

/** A record body; every field may be missing. */
export const body = (rng: Rng, mask: Mask): Json => {
  const record: Record<string, unknown> = {}
  for (const name of fieldsOf(mask))
    if (rng.chance(name === "n" || name === "s" || name === "author" ? 0.9 : 0.6))
      record[name] = makers[name]!(rng, mask)
  return record
}

/** An edge record; now and then one end is missing or no record. */
const edge = (rng: Rng, table: string, mask: Mask): Json => ({
  in: !mask.has("mixed") || rng.chance(0.96) ? `person:${rng.pick(keys)}` : rng.pick(odd),
  out:
    !mask.has("mixed") || rng.chance(0.96)
      ? `${table === "likes" ? "post" : "person"}:${rng.pick(keys)}`
      : rng.pick(odd),
  w: rng.below(4)
})

const linkTypes = { friend: "record", author: "record", "links.*": "record", in: "record", out: "record" }

/** How the feed types a record: links as records or left as text, numbers sometimes as floats or decimals. */
const typesOf = (rng: Rng, mask: Mask): Json | undefined => {
  if (!mask.has("records")) return undefined
  return mask.has("numbers")
    ? { ...linkTypes, n: rng.pick(["float", "decimal", "int"]), g: rng.pick(["float", "decimal", "int"]) }
    : linkTypes
}

/** The generator's own picture of the data, so that changes can refer to what is there. */
class Data {
  readonly records = new Map<string, Json>()
  saved: ReadonlyMap<string, Json> = new Map()
  private version = 0
  private readonly rng: Rng
  private readonly mask: Mask

  constructor(rng: Rng, mask: Mask) {
    this.rng = rng
    this.mask = mask
  }

  anyId(): string {
    const { mask, rng } = this
    if (mask.has("graph") && rng.chance(0.3)) return `${rng.pick(edgeTables)}:${rng.below(7)}`
    return `${rng.pick(tables)}:${rng.pick(rng.chance(0.2) ? twins : keys)}`
  }

  fresh(id: string): Json {
    const table = id.slice(0, id.indexOf(":"))
    return edgeTables.includes(table) ? edge(this.rng, table, this.mask) : body(this.rng, this.mask)
  }

  put(id: string, record: Json): unknown {
    const { mask, rng } = this
    const types = typesOf(rng, mask)
    const stale = this.records.has(id) && rng.chance(0.2)
    const versioned =
      mask.has("versions") && rng.chance(0.2)
        ? { _svc_rv: stale ? rng.pick([0, this.version]) : (this.version += 1000) }
        : {}
    this.records.set(id, record)
    return {
      table: id.slice(0, id.indexOf(":")),
      id,
      op: rng.pick(["CREATE", "UPDATE"]),
      record: { ...record, ...versioned },
      ...(types === undefined ? {} : { types })
    }
  }

  remove(id: string): unknown {
    this.records.delete(id)
    return { table: id.slice(0, id.indexOf(":")), id, op: "DELETE", record: {} }
  }

  /** Changes one field of a record that is there. */
  edit(): unknown {
    const { rng } = this
    if (this.records.size === 0) return this.put(this.anyId(), {})
    const id = rng.pick([...this.records.keys()])
    const old = this.records.get(id)!,
      other = this.fresh(id)
    const name = rng.pick([...new Set([...Object.keys(old), ...Object.keys(other)]), "note"])
    const next: Record<string, unknown> = { ...old }
    if (name === "note") next["note"] = rng.below(3)
    else if (other[name] === undefined) delete next[name]
    else next[name] = other[name]
    return this.put(id, next)
  }

  back(): unknown {
    const id = this.anyId()
    const saved = this.saved.get(id)
    return saved === undefined ? this.remove(id) : this.put(id, saved)
  }

  /** One change of the phase: build up, tear down, edit, edit back. */
  change(phase: number): unknown {
    const { rng } = this
    if (rng.chance(0.02) && this.records.size > 0) {
      const id = rng.pick([...this.records.keys()])
      return this.put(id, this.records.get(id)!)
    }
    if (phase === 3 && rng.chance(0.6)) return this.back()
    if (rng.chance([0.1, 0.65, 0.12, 0.15][phase] ?? 0.2))
      return this.remove(this.records.size > 0 && rng.chance(0.8) ? rng.pick([...this.records.keys()]) : this.anyId())
    if (phase > 1 && rng.chance(0.7)) return this.edit()
    const id = this.anyId()
    return this.put(id, this.fresh(id))
  }
}

/**
 * A history of about `length` changes in four phases, with the views watched on the way: most from the start, some
 * later, some released again.
 */
export const history = (
  rng: Rng,
  mask: Mask,
  length: number,
  watches: ReadonlyArray<Extract<Step, { readonly watch: string }>>
): ReadonlyArray<Step> => {
  const data = new Data(rng, mask)
  const steps: Array<Step> = []
  const due = watches
    .map((watch) => ({ watch, at: mask.has("late") && rng.chance(0.3) ? rng.below(length) : 0 }))
    .sort((a, b) => a.at - b.at)
  for (let n = 0; n < length; ) {
    while (due[0] !== undefined && due[0].at <= n) steps.push(due.shift()!.watch)
    const phase = Math.floor((n * 4) / length)
    if (phase === 1 && data.saved.size === 0) data.saved = new Map(data.records)
    if (mask.has("restart") && rng.chance(0.004)) steps.push({ restart: true })
    if (mask.has("late") && rng.chance(0.004)) {
      const watch = rng.pick(watches)
      if (steps.some((step) => step === watch)) steps.push({ release: watch.watch }, watch)
    }
    if (mask.has("batch") && rng.chance(0.04)) {
      const batch = Array.from({ length: 2 + rng.below(12) }, () => data.change(phase))
      steps.push({ batch })
      n += batch.length
    } else {
      steps.push({ write: [data.change(phase)] })
      n++
    }
  }
  return steps
}
