/**
 * `npm --prefix scripts/bench/engine run heap`: what a record takes of the heap in the store, beside plain objects.
 *
 * Why a ratio: parsed JSON in a map by id is the least that a program in JavaScript keeps records in, and both are
 * measured in one process on one runtime. Records come as the service reads them, by the decoder. `--check` exits 1
 * where a figure is above its goal.
 */
import { Either } from "effect"
import { Engine } from "../../../../src/core/ivm/engine.ts"
import { decodeChange } from "../../../../src/core/record/change.ts"
import { judged } from "../judged.ts"
import { databaseKey } from "../keys.ts"

const goalRatio = 1.1
const records = 100_000
/** Records in one text of JSON, as a bootstrap reads them. */
const perBody = 500

/** Nine fields, about 260 B of JSON. */
const record = (id: string, n: number) => ({
  id,
  title: `Post number ${(n * 7919) % 1_000_000}`,
  body: `what a post of some words of text says, and ${n % 1000} more that say nothing at all`,
  author: `person:${n % 1000}`,
  topic: ["draft of a post", "news of the day", "a short review", "an open question"][n % 4],
  likes: n % 100,
  rating: (n % 50) / 10 + 0.05,
  open: n % 2 === 0,
  at: 1_700_000_000_000 + 7919 * n
})

type Plain = ReturnType<typeof record>

/** Body by body, parsed. */
function* parsed(keyOf: (n: number) => string | number): Iterable<ReadonlyArray<Plain>> {
  for (let n = 0; n < records; n += perBody)
    yield JSON.parse(JSON.stringify(Array.from({ length: perBody }, (_, i) => record(`post:${keyOf(n + i)}`, n + i))))
}

const heapUsed = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  const { arrayBuffers, heapUsed: used } = process.memoryUsage()
  return used + arrayBuffers
}

/** Bytes of heap for each record of what is made. */
const bytesOf = (make: () => object): number => {
  const before = heapUsed()
  const made = make()
  const bytes = (heapUsed() - before) / records
  // It is held until here.
  if (Object.keys(made).length < 0) throw new Error("no object")
  return bytes
}

const plain = (keyOf: (n: number) => string | number) => (): object => {
  const byId = new Map<string, Plain>()
  for (const body of parsed(keyOf)) for (const one of body) byId.set(one.id, one)
  return byId
}

const stored = (keyOf: (n: number) => string | number) => (): object => {
  const engine = new Engine()
  for (const body of parsed(keyOf))
    for (const one of body) {
      const change = decodeChange({ table: "post", op: "CREATE", id: one.id, record: one })
      const { doc, id } = Either.getOrThrowWith(change, JSON.stringify)
      engine.load(id, 1, doc)
    }
  return engine
}

const kinds: ReadonlyArray<readonly [name: string, keyOf: (n: number) => string | number]> = [
  ["counted id", (n) => n],
  ["id of text", databaseKey]
]

if (globalThis.gc === undefined) throw new Error("needs --expose-gc")
const bytesOfJson = Array.from(parsed(databaseKey), (body) => JSON.stringify(body).length).reduce((a, b) => a + b)
console.log(`${records.toLocaleString("en")} records of ${Math.round(bytesOfJson / records)} B of JSON`)
// What is made once, compiled code and tables of the decoder, is not the records'.
for (const [, keyOf] of kinds) for (const make of [plain(keyOf), stored(keyOf)]) make()
for (const [name, keyOf] of kinds) {
  const [objects, store] = [bytesOf(plain(keyOf)), bytesOf(stored(keyOf))]
  const ratio = store / objects
  const verdict = judged(ratio <= goalRatio)
  console.log(
    `| ${name} | map ${objects.toFixed(0)} B | store ${store.toFixed(0)} B | ${ratio.toFixed(2)} | at most ${goalRatio} | ${verdict} |`
  )
}
